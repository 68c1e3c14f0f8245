package anthropic

import (
	"strings"
	"testing"
)

// Each system message is behind a message of the user, and in front of one of the assistant or at the end.
func TestPlaceSystem(t *testing.T) {
	t.Parallel()
	message := map[byte]string{
		'u': `{"role":"user","content":"u"}`, 'a': `{"role":"assistant","content":"a"}`,
		's': `{"role":"system","content":"s"}`, 'S': `{"role":"system","content":[{"type":"text","text":"S"}]}`,
	}
	for in, want := range map[string]string{
		"": "", "ua": "ua", "usa": "usa", "us": "us", "usSa": "usSa",
		"usua": "uusa", "usu": "uus", "su": "us", "sua": "usa", "asu": "aus", "uasua": "uausa",
		"as": "am", "sa": "ma", "uasa": "uama",
	} {
		var messages [][]byte
		for i := range len(in) {
			messages = append(messages, []byte(message[in[i]]))
		}
		var got strings.Builder
		for _, m := range PlaceSystem(messages) {
			switch kind := strings.IndexByte("uasS", string(m)[len(`{"role":"`)]); {
			case strings.Contains(string(m), "system-reminder"):
				got.WriteByte('m')
			case string(m) == message['S']:
				got.WriteByte('S')
			default:
				got.WriteByte("uasS"[kind])
			}
		}
		if got.String() != want {
			t.Errorf("%q becomes %q, not %q", in, got.String(), want)
		}
	}
}
