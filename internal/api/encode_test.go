package api

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/runs"
)

func encoded(t interface{ Fatal(...any) }, v any) string {
	var b bytes.Buffer
	if err := jsonFormat.Marshal(&b, v); err != nil {
		t.Fatal(err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// The bytes that an agent cares for, in every place where they can stand.
func TestRawJSONGoesOutAsItIs(t *testing.T) {
	t.Parallel()
	raws := []string{
		`{ "b" : 1,  "a":2 }`, `9007199254740993`, `1.0e2`, `"\u0000 \ud800 \ud83d\ude00 < > & \/"`,
		"{\n\t\"x\": [ ]\n}", `"ä\u00e4"`,
	}
	for _, raw := range raws {
		m := json.RawMessage(raw)
		for name, v := range map[string]struct {
			value any
			want  string
		}{
			"Value":   {m, raw},
			"Pointer": {&m, raw},
			"List":    {[]json.RawMessage{m, m}, "[" + raw + "," + raw + "]"},
			"Map":     {map[string]json.RawMessage{"k<": m}, `{"k<":` + raw + "}"},
			"Field": {struct {
				A json.RawMessage `json:"a"`
				B any             `json:"b"`
			}{m, m}, `{"a":` + raw + `,"b":` + raw + "}"},
			"Context": {wire.Message{Seq: 1, Native: m}.Native, raw},
		} {
			if got := encoded(t, v.value); got != v.want {
				t.Errorf("%s: %s, want %s", name, got, v.want)
			}
		}
	}
}

func TestEncodeFields(t *testing.T) {
	t.Parallel()
	type inner struct {
		X int    `json:"x"`
		Y string `json:"y,omitempty"`
	}
	type Named struct{ Z int }
	type both struct {
		inner
		*Named
		Own   inner           `json:"own"`
		Y     string          `json:"y"` // hides the embedded one
		Skip  int             `json:"-"`
		None  json.RawMessage `json:"none"`
		Gone  json.RawMessage `json:"gone,omitempty"`
		List  []int           `json:"list"`
		Maybe []int           `json:"maybe,omitempty"`
		Bytes []byte          `json:"bytes"`
		When  time.Time       `json:"when,omitzero"`
		At    *time.Time      `json:"at"`
		Plain string
		quiet int
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	for want, v := range map[string]both{
		`{"x":0,"own":{"x":0},"y":"","none":null,"list":[],"bytes":null,"at":null,"Plain":""}`: {},
		`{"x":1,"Z":3,"own":{"x":2,"y":"<i>"},"y":"o","none":null,"list":[1],"bytes":"AQI=",` +
			`"at":"2026-01-02T03:04:05.000000006Z","Plain":"\u2028<\u0000"}`: {
			inner: inner{X: 1, Y: "hidden"},
			Named: &Named{3}, Own: inner{2, "<i>"}, Y: "o", Skip: 1, List: []int{1}, Bytes: []byte{1, 2}, At: &at,
			Plain: "\u2028<\x00", quiet: 1,
		},
	} {
		if got := encoded(t, v); got != want {
			t.Errorf("\n got %s\nwant %s", got, want)
		}
	}
}

// What holds no raw JSON is written as encoding/json writes it, but for nil lists.
func TestEncodeAsTheStandardLibrary(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := rapid.Int64().Draw(t, "at")
		text := rapid.String().Draw(t, "text")
		raw := json.RawMessage(rapid.SampledFrom([]string{`{}`, `{"a":[1,2,{"b":null}]}`, `[]`, `"x"`}).Draw(t, "raw"))
		v := runreport.Of(runs.Run{
			Ref: store.RunRef{ID: text}, Focus: text, Reason: text,
			Trigger: json.RawMessage(`{"used":` + string(encoded(t, at)) + `}`), Versions: raw,
			Created: time.Unix(at%4_000_000_000, 0).UTC(),
			Attempts: []runs.Attempt{{
				Stage: contract.Stage(text), Numbers: raw,
				Artifacts: map[contract.ArtifactKind]string{contract.ArtifactKind(text): "x", "a": text},
			}},
		})
		v.RunTexts = &wire.RunTexts{Prompts: []wire.RunPrompted{{System: text}}, Summary: text}
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		if got := encoded(t, v) + "\n"; got != want.String() {
			t.Fatalf("\n got %s\nwant %s", got, want.String())
		}
	})
}
