package pipeline

import (
	"encoding/json"
	"strings"
)

// argument is one value of a tool call's input.
type argument struct {
	// key is the value's name, for a value in a list the list's name, "" for none.
	key, value string
	// text reports that it was a string.
	text bool
}

// argumentsOf returns the values in a tool call's input, strings decoded, in order. Input that is not JSON is one
// value; damaged input gives the values before the damage.
func argumentsOf(w *work, input string) []argument {
	input = strings.TrimSpace(input)
	if input == "" {
		return nil
	}
	if input[0] != '{' && input[0] != '[' {
		return []argument{{value: input, text: true}}
	}
	d := json.NewDecoder(&pacedReader{Reader: strings.NewReader(input), work: w})
	d.UseNumber()
	var all []argument
	type frame struct {
		object bool
		key    string
		// named reports that the key was read and its value is next.
		named bool
	}
	var open []frame
	for {
		w.spend(0)
		token, err := d.Token()
		if err != nil {
			return all
		}
		key := ""
		if n := len(open); n > 0 {
			top := &open[n-1]
			if delim, ok := token.(json.Delim); ok && (delim == '}' || delim == ']') {
				open = open[:n-1]
				continue
			}
			if top.object && !top.named {
				name, _ := token.(string)
				top.key, top.named = name, true
				continue
			}
			key, top.named = top.key, false
		}
		switch v := token.(type) {
		case json.Delim:
			open = append(open, frame{object: v == '{', key: key})
		case string:
			all = append(all, argument{key: key, value: v, text: true})
		case json.Number:
			all = append(all, argument{key: key, value: v.String()})
		}
	}
}
