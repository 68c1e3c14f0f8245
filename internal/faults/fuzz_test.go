package faults

import "testing"

// FuzzDecode: reading a case ends for every input, and an accepted case can be read by everything that plays it.
func FuzzDecode(f *testing.F) {
	for _, line := range []string{
		`{"name":"a repeated text","settings":{"window":1000},"messages":[{"role":"user","content":{"prefix":"a ",` +
			`"repeat":"b ","times":3,"suffix":"c"}},{"op":"compact"}],"answers":[{"text":"S","finish":"stop"}]}`,
		`{"name":"repeated messages","settings":{"window":1,"auto":false},"messages":[{"op":"repeat","times":2,` +
			`"messages":[{"role":"user","content":"u{i}"},{"op":"undo","expect_status":[404,409]}]}],` +
			`"answers":[{"use_variant":true}],"answer_variants":[{"error":{"status":400}}]}`,
		`{"name":"variants of messages","settings":{"window":1},"messages":[{"op":"use_variant"}],` +
			`"message_variants":[[],[{"role":"user","content":"hi"}]]}`,
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
			t.Fatalf("an accepted case has unreadable steps: %v", err)
		}
		for variant := range got.variants() {
			if _, err := scriptOf(got, variant); err != nil {
				t.Fatalf("an accepted case has an unreadable script: %v", err)
			}
		}
		formsOf(got) // it returns, that is all
	})
}

// TestUnknownWordsAreRefused: a case with a word that the harness does not know is never played in part.
func TestUnknownWordsAreRefused(t *testing.T) {
	t.Parallel()
	const head, tail = `{"name":"X","messages":[`, `],"settings":{"window":1000}`
	for _, line := range []string{
		head + `{"op":"dance"}` + tail + `}`,
		head + `{"op":"compact","with":1}` + tail + `}`,
		head + `{"op":"compact","expected_version":1}` + tail + `}`, // of another operation
		head + `{"role":"user","content":"u","color":"red"}` + tail + `}`,
		head + `{"op":"repeat","times":2,"messages":[{"op":"dance"}]}` + tail + `}`,
		head + `],"settings":{"window":1000,"color":"red"}}`,
		head + tail + `,"message_variants":[[{"op":"dance"}]]}`,
		head + tail + `,"answers":[{"text":"S","color":"red"}]}`,
		head + tail + `,"answers":[{"error":{"status":400,"color":"red"}}]}`,
		head + tail + `,"answers":[{"content":[{"type":"text","color":"red"}]}]}`,
		head + tail + `} more`,
		head + tail + `,"color":"red"}`,
		head + `]}`,
	} {
		if _, err := decodeFault([]byte(line)); err == nil {
			t.Errorf("accepted: %s", line)
		}
	}
	if _, err := decodeFault([]byte(head + tail + `}`)); err != nil {
		t.Errorf("refused without unknown words: %v", err)
	}
}
