package transcript_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

type decodeCase struct {
	name   string
	format transcript.Format
	in     string
	want   string
}

func TestDecode(t *testing.T) {
	t.Parallel()
	for _, c := range decodeCases {
		t.Run(string(c.format)+"/"+c.name, func(t *testing.T) {
			t.Parallel()
			codec := codecOf(t, c.format)
			if codec.Format() != c.format {
				t.Fatalf("the codec is of %s", codec.Format())
			}
			m, err := codec.Decode([]byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			got, _, _ := strings.Cut(dumpMessage(m), "\n  = ")
			if diff := cmp.Diff(c.want, strings.ReplaceAll(got, "\n  ", "|")); diff != "" {
				t.Errorf("the message differs (-want +got):\n%s", diff)
			}
			checkMessage(t, c.format, m)
		})
	}
}

type decodeErrorCase struct {
	format transcript.Format
	in     string
	err    string
}

// What is not a message of the format can be neither decoded nor edited.
func TestDecodeErrors(t *testing.T) {
	t.Parallel()
	for _, c := range decodeErrorCases {
		t.Run(string(c.format)+"/"+c.in, func(t *testing.T) {
			t.Parallel()
			codec := codecOf(t, c.format)
			_, err := codec.Decode([]byte(c.in))
			if err == nil || !strings.Contains(err.Error(), c.err) || pipeline.KindOf(err) != pipeline.BadRequest {
				t.Errorf("got %v of kind %q, want a bad_request with %q", err, pipeline.KindOf(err), c.err)
			}
			if out, err := codec.Encode(pipeline.Message{Native: []byte(c.in)},
				[]pipeline.Edit{drop(0, -1)}); err == nil {
				t.Errorf("edited it is %s", out)
			}
		})
	}
}

func claudeAttachment(attachment string) string {
	return `{"parentUuid":"p","type":"attachment","attachment":` + attachment + `,"uuid":"q"}`
}

func codexRecord(payload string) string {
	return `{"timestamp":"t","type":"response_item","payload":` + payload + `}`
}

// Memory is bounded for a file with arbitrary names.
func TestNotesAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(userLine("a", "1"))
	for i := range 3 * transcript.MaxNoteKinds {
		b.WriteString("\n" + `{"type":"made-up-` + strings.Repeat("x", i) + `","sessionId":"s"}`)
	}
	all, err := items(t, strings.NewReader(b.String()), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	kinds, total := 0, 0
	for _, it := range all {
		if it.Note != nil {
			kinds++
			total += it.Note.Count
		}
	}
	if kinds != transcript.MaxNoteKinds+1 || total != 3*transcript.MaxNoteKinds {
		t.Errorf("%d notes count %d records", kinds, total)
	}
}
