package contract

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"precis/pipeline"
)

// Attempts recorded up to migration 13 had keys made of a word and a model where lists are now: "skipped VENDOR/MODEL",
// "native VENDOR/MODEL", and under "summarizers" an object by "MODEL WINDOW OUTPUT". Rows are sealed, so they stay as
// they are and are translated here when they are read.

// UnmarshalJSON reads both forms.
func (n *SummarizerNotes) UnmarshalJSON(data []byte) error {
	type plain SummarizerNotes
	if err := json.Unmarshal(data, (*plain)(n)); err != nil {
		return err
	}
	return eachKey(data, func(word, model string, value json.RawMessage) error {
		var list *[]pipeline.SkippedSummarizer
		switch word {
		case "skipped":
			list = &n.Skipped
		case "explicit":
			list = &n.NotNative
		default:
			return nil
		}
		s := pipeline.SkippedSummarizer{Model: model}
		if err := json.Unmarshal(value, &s.Reason); err != nil {
			return err
		}
		*list = append(*list, s)
		return nil
	})
}

// UnmarshalJSON reads both forms.
func (g *Given) UnmarshalJSON(data []byte) error {
	type plain Given
	if err := json.Unmarshal(data, (*plain)(g)); err != nil {
		return err
	}
	return eachKey(data, func(word, name string, value json.RawMessage) error {
		if word != "native" {
			return nil
		}
		var n NativeAbility
		if err := json.Unmarshal(value, &n); err != nil {
			return err
		}
		n.Vendor, n.Model, _ = strings.Cut(name, "/")
		g.Native = append(g.Native, n)
		return nil
	})
}

// UnmarshalJSON reads both forms.
func (r *ResolvedSummarizers) UnmarshalJSON(data []byte) error {
	var list []ResolvedSummarizer
	if err := json.Unmarshal(data, &list); err == nil {
		*r = list
		return nil
	}
	var byName map[string]ResolvedSummarizer
	if err := json.Unmarshal(data, &byName); err != nil {
		return err
	}
	for name, known := range byName {
		words := strings.Split(name, " ")
		n := len(words)
		if n < 3 {
			return fmt.Errorf("summarizer %q is not MODEL WINDOW OUTPUT", name)
		}
		window, err := strconv.Atoi(words[n-2])
		if err != nil {
			return fmt.Errorf("summarizer %q is not MODEL WINDOW OUTPUT: %w", name, err)
		}
		output, err := strconv.Atoi(words[n-1])
		if err != nil {
			return fmt.Errorf("summarizer %q is not MODEL WINDOW OUTPUT: %w", name, err)
		}
		known.Spec = pipeline.SummarizerSpec{
			Model: strings.Join(words[:n-2], " "), ContextWindow: window, MaxOutput: output,
		}
		*r = append(*r, known)
	}
	return nil
}

// eachKey calls visit for every key of an object that is a word and a name behind a space.
func eachKey(data []byte, visit func(word, name string, value json.RawMessage) error) error {
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	for key, value := range object {
		word, name, ok := strings.Cut(key, " ")
		if !ok {
			continue
		}
		if err := visit(word, name, value); err != nil {
			return err
		}
	}
	return nil
}
