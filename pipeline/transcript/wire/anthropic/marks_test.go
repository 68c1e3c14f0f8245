package anthropic

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLimitMarks draws requests with marks of both lifetimes: what stays is legal, is the newest, and nothing else of
// the request changes.
func TestLimitMarks(t *testing.T) {
	t.Parallel()
	const (
		short = `,"cache_control":{"type":"ephemeral"}`
		hour  = `,"cache_control":{"type":"ephemeral","ttl":"1h"}`
	)
	rapid.Check(t, func(t *rapid.T) {
		block := func() string {
			mark := rapid.SampledFrom([]string{"", short, hour}).Draw(t, "mark")
			if rapid.Bool().Draw(t, "result") {
				inner := rapid.SampledFrom([]string{"", short, hour}).Draw(t, "inner")
				return fmt.Sprintf(`{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"a"%s}]%s}`,
					inner, mark)
			}
			return fmt.Sprintf(`{"type":"text","text":"cache_control"%s}`, mark)
		}
		docs := [][]byte{
			[]byte(`[{"name":"f","input_schema":{}` + rapid.SampledFrom([]string{"", short, hour}).Draw(t, "tool") + `}]`),
			nil,
		}
		for range rapid.IntRange(0, 8).Draw(t, "messages") {
			docs = append(docs, []byte(`{"role":"user","content":[ `+block()+` , `+block()+` ]}`))
		}
		before := strings.Builder{}
		for _, d := range docs {
			before.Write(d)
		}
		after := strings.Builder{}
		for _, d := range LimitMarks(docs...) {
			after.Write(d)
		}
		plain := strings.NewReplacer(short, "", hour, "")
		if plain.Replace(before.String()) != plain.Replace(after.String()) {
			t.Fatalf("more than marks changed:\n%s\n%s", before.String(), after.String())
		}
		n, five := 0, false
		for rest := after.String(); ; n++ {
			i := strings.Index(rest, `,"cache_control":`)
			if i < 0 {
				break
			}
			rest = rest[i+1:]
			isHour := strings.HasPrefix(rest, hour[1:])
			if isHour && five {
				t.Fatalf("an hour behind five minutes: %s", after.String())
			}
			five = five || !isHour
		}
		if had := strings.Count(before.String(), `,"cache_control":`); n > MaxMarks || had > 0 && n == 0 {
			t.Fatalf("%d of %d marks: %s", n, had, after.String())
		}
		// A mark in the last block stays, whatever comes before it.
		if s := before.String(); strings.HasSuffix(s, short+` ]}`) && !strings.HasSuffix(after.String(), short+` ]}`) {
			t.Fatalf("the newest mark is not kept: %s", after.String())
		}
	})
}
