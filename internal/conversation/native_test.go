package conversation

import (
	"testing"

	"precis/internal/config"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/pipeline/transcript"
)

// What a vendor is to compact may end with what the agent said, and Anthropic refuses white space at the end of that.
func TestNativeMessagesEndWithoutSpace(t *testing.T) {
	t.Parallel()
	const user = `{"role":"user","content":"look"}`
	cases := []struct{ name, last, want string }{
		{"Text", `{"role":"assistant","content":"I looked \n"}`, `{"role":"assistant","content":"I looked"}`},
		{
			"LastBlock", `{"role":"assistant","content":[{"type":"text","text":"one "},{"type":"text","text":"two\t"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"one "},{"type":"text","text":"two"}]}`,
		},
		{"Nothing", `{"role":"assistant","content":"I looked"}`, `{"role":"assistant","content":"I looked"}`},
		{"TheUsers", `{"role":"user","content":"and? "}`, `{"role":"user","content":"and? "}`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			codec, err := transcript.CodecFor(transcript.Anthropic)
			if err != nil {
				t.Fatal(err)
			}
			v := View{
				Source: contexts.Source{Conversation: conversations.Conversation{
					Format: string(transcript.Anthropic),
					Vendor: "anthropic",
				}},
				Settings: config.DefaultSettings(), Codec: codec,
			}
			for i, native := range []string{user, c.last} {
				m, err := codec.Decode([]byte(native))
				if err != nil {
					t.Fatal(err)
				}
				m.Seq = int64(i + 1)
				v.Messages = append(v.Messages, m)
			}
			got, _, err := v.NativeMessages(t.Context(), 2)
			if err != nil || len(got) != 2 || string(got[0]) != user || string(got[1]) != c.want {
				t.Errorf("%q, %v; the last one should be %s", got, err, c.want)
			}
			if string(v.Messages[1].Native) != c.last {
				t.Errorf("what is stored became %s", v.Messages[1].Native)
			}
		})
	}
}
