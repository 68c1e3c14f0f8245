package faults

import "testing"

// FuzzDecode: whatever stands in a line of the collection, reading it ends, and what is taken can be read again.
func FuzzDecode(f *testing.F) {
	for _, line := range []string{
		`{"id":"X1","kind":"k","title":"t","messages":[{"role":"user","content":{"prefix":"a ","repeat":"b ",` +
			`"times":3,"suffix":"c"}},{"op":"compact"}],"config":{"context_window":1000,"llm":[{"text":"S",` +
			`"finish":"stop"}]},"expect":"e","hard":true}`,
		`{"id":"X2","kind":"k","title":"t","messages":[{"op":"repeat","times":2,"messages":[{"role":"user",` +
			`"content":"u{i}"},{"op":"undo","expect_status":[404,409]}]}],"config":{"context_window":1,` +
			`"auto":false,"variants":[{"error":{"status":400}}],"llm":[{"use_variant":true}],"action":[` +
			`"compact"]},"expect":"e"}`,
		`{"id":"X3","kind":"k","title":"t","variants":[[],[{"role":"user","content":"hi"}]],"messages":[{` +
			`"op":"use_variant"}],"config":{"context_window":1},"expect":"e"}`,
		`{"messages":[{"op":"unknown"}]}`, `[[[[`, `{"a":{"repeat":"x","times":-1}}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, err := decodeFault(line)
		if err != nil {
			return
		}
		steps, err := stepsOf(got.Messages)
		if err != nil || len(steps) != len(got.Messages) {
			t.Fatalf("a case was taken whose steps are not readable: %v", err)
		}
		for variant := range max(1, len(got.Config.Variants)) {
			if _, err := scriptOf(got, variant); err != nil {
				t.Fatalf("a case was taken whose script is not readable: %v", err)
			}
		}
		formsOf(got) // it returns, that is all
	})
}

// TestUnknownWordsAreRefused: a case with a word that the harness does not know is never half played.
func TestUnknownWordsAreRefused(t *testing.T) {
	t.Parallel()
	const head, tail = `{"id":"X","kind":"k","title":"t","expect":"e","messages":[`, `],"config":{"context_window":1000`
	for _, line := range []string{
		head + `{"op":"dance"}` + tail + `}}`,
		head + `{"op":"compact","with":1}` + tail + `}}`,
		head + `{"op":"compact","expected_version":1}` + tail + `}}`, // of another operation
		head + `{"role":"user","content":"u","colour":"red"}` + tail + `}}`,
		head + `{"op":"repeat","times":2,"messages":[{"op":"dance"}]}` + tail + `}}`,
		head + tail + `,"colour":"red"}}`,
		head + tail + `,"action":["dance"]}}`,
		head + tail + `,"llm":[{"text":"S","colour":"red"}]}}`,
		head + tail + `,"llm":[{"error":{"status":400,"colour":"red"}}]}}`,
		head + tail + `,"llm":[{"content":[{"type":"text","colour":"red"}]}]}}`,
		head + tail + `}}` + ` more`,
		`{"id":"X","kind":"k","expect":"e","messages":[],"config":{"context_window":1000},"colour":"red"}`,
	} {
		if _, err := decodeFault([]byte(line)); err == nil {
			t.Errorf("taken: %s", line)
		}
	}
	if _, err := decodeFault([]byte(head + tail + `}}`)); err != nil {
		t.Errorf("not taken without them: %v", err)
	}
}
