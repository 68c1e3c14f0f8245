package fieldcases

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// at returns the value at a path of keys and numbers.
func at(v any, path string) (any, bool) {
	for key := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case object:
			next, ok := x[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(key)
			if i < 0 {
				i += len(x)
			}
			if err != nil || i < 0 || i >= len(x) {
				return nil, false
			}
			v = x[i]
		default:
			return nil, false
		}
	}
	return v, true
}

func text(v any) string { return strings.Join(texts(nil, v), "\n") }

var summaryElement = regexp.MustCompile(`(?s)<conversation_summary[^>]*>.*?</conversation_summary>`)

// holds returns an error unless the assertion holds.
func (p *play) holds(a object) error {
	path, _ := a["of"].(string)
	v, found := at(p.answers, path)
	if where, ok := a["where"].(string); ok {
		list, _ := v.([]any)
		v, found = nil, false
		for _, el := range list {
			if strings.Contains(text(el), where) {
				v, found = el, true
				break
			}
		}
	}
	if then, ok := a["then"].(string); ok {
		v, found = at(v, then)
	}
	t := text(v)
	switch a["part"] {
	case "summary":
		t = strings.Join(summaryElement.FindAllString(t, -1), "\n")
	case "outside":
		t = summaryElement.ReplaceAllString(t, "\n")
	}
	var errs []error
	for word, want := range a {
		if err := p.word(word, want, a, v, found, t); err != nil {
			errs = append(errs, fmt.Errorf("%s %s: %w", path, encode(a), err))
		}
	}
	return errors.Join(errs...)
}

func (p *play) word(word string, want any, a object, v any, found bool, t string) error {
	got := short(v)
	list, _ := want.([]any)
	switch word {
	case "has", "lacks", "once", "each", "order":
		return about(word, list, t)
	case "match":
		if !regexp.MustCompile("(?is)" + want.(string)).MatchString(t) {
			return fmt.Errorf("not found in %q", short(t))
		}
	case "is":
		if !equal(v, want) {
			return fmt.Errorf("it is %s", got)
		}
	case "not":
		if equal(v, want) {
			return fmt.Errorf("it is %s", got)
		}
	case "in":
		for _, w := range list {
			if equal(v, w) {
				return nil
			}
		}
		return fmt.Errorf("it is %s", got)
	case "between":
		if !between(number(v), list) || !found {
			return fmt.Errorf("it is %s", got)
		}
	case "length":
		if x, ok := v.([]any); !ok || !equal(len(x), want) {
			return fmt.Errorf("it has %d elements", len(x))
		}
	case "ratio":
		o := want.(object)
		other, _ := at(p.answers, o["of"].(string))
		if !between(number(v)/number(other), o["between"].([]any)) {
			return fmt.Errorf("they are %s and %v", got, other)
		}
	case "same", "begins":
		return p.compare(word, want, a["but"], v)
	case "keys":
		for k, r := range want.(object) {
			if n := keys(v, k); !between(float64(n), r.([]any)) {
				return fmt.Errorf("%s occurs %d times", k, n)
			}
		}
	case "marks":
		return marks(v, list)
	case "pairs":
		return pairs(v)
	}
	return nil
}

func about(word string, list []any, t string) error {
	from := 0
	for _, w := range list {
		s := w.(string)
		n, i := strings.Count(t, s), strings.Index(t, s)
		switch {
		case word == "lacks" && n > 0, word != "lacks" && n == 0, (word == "once" || word == "each") && n != 1:
			return fmt.Errorf("%q occurs %d times in %q", s, n, short(t))
		case (word == "each" || word == "order") && i < from:
			return fmt.Errorf("%q is out of order", s)
		}
		from = i
	}
	return nil
}

func (p *play) compare(word string, want, but, v any) error {
	if path, ok := want.(string); ok {
		if found, ok := at(p.answers, path); ok {
			want = found
		}
	}
	key, _ := but.(string)
	want, v = without(want, key), without(v, key)
	if word == "begins" {
		all, _ := v.([]any)
		head, _ := want.([]any)
		if len(all) < len(head) {
			return fmt.Errorf("it has only %d elements", len(all))
		}
		want, v = any(head), any(all[:len(head)])
	}
	if string(encode(want)) != string(encode(v)) {
		return fmt.Errorf("got\n    %s, want\n    %s", short(v), short(want))
	}
	return nil
}

// without returns a copy of a value without a key.
func without(v any, key string) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = without(x, key)
		}
		return out
	case object:
		out := object{}
		for k, x := range v {
			if k != key {
				out[k] = without(x, key)
			}
		}
		return out
	}
	return v
}

func equal(a, b any) bool {
	return reflect.DeepEqual(decode(encode(a)), decode(encode(b)))
}

func number(v any) float64 {
	f, _ := strconv.ParseFloat(fmt.Sprint(v), 64)
	return f
}

func between(f float64, r []any) bool { return f >= number(r[0]) && f <= number(r[1]) }

func short(v any) string {
	s, ok := v.(string)
	if !ok {
		s = string(encode(v))
	}
	if len(s) > 1500 {
		s = s[:1000] + " … " + s[len(s)-400:]
	}
	return s
}

// marks counts the cache marks of a request and compares the order of their lifetimes.
func marks(v any, r []any) error {
	ordered := []any{v}
	if o, ok := v.(object); ok && o["messages"] != nil {
		ordered = []any{o["tools"], o["system"], o["messages"]}
	}
	n, short := 0, false
	var walk func(v any) error
	walk = func(v any) error {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				if err := walk(x); err != nil {
					return err
				}
			}
		case object:
			for k, x := range v {
				if k != "cache_control" {
					if err := walk(x); err != nil {
						return err
					}
				}
			}
			if mark, ok := v["cache_control"].(object); ok {
				n++
				if mark["ttl"] == "1h" && short {
					return errors.New("a mark of an hour is behind one of five minutes")
				}
				short = short || mark["ttl"] != "1h"
			}
		}
		return nil
	}
	if err := walk(ordered); err != nil {
		return err
	}
	if !between(float64(n), r) {
		return fmt.Errorf("it has %d marks", n)
	}
	return nil
}

// pairs requires that every call has its result right behind it, and every result its call.
func pairs(v any) error {
	list, _ := v.([]any)
	open := map[string]bool{}
	for i, el := range list {
		m, _ := el.(object)
		var calls, results []string
		content, _ := m["content"].([]any)
		for _, b := range content {
			block, _ := b.(object)
			kind, _ := block["type"].(string)
			if id, ok := block["id"].(string); ok && kind == "tool_use" {
				calls = append(calls, id)
			}
			if id, ok := block["tool_use_id"].(string); ok && kind == "tool_result" {
				results = append(results, id)
			}
		}
		toolCalls, _ := m["tool_calls"].([]any)
		for _, c := range toolCalls {
			id, _ := c.(object)["id"].(string)
			calls = append(calls, id)
		}
		if id, ok := m["tool_call_id"].(string); ok && m["role"] == "tool" {
			results = append(results, id)
		}
		for _, id := range results {
			if !open[id] {
				return fmt.Errorf("message %d has the result of %s, which is not a call right before it", i, id)
			}
			delete(open, id)
		}
		if m["role"] != "tool" || len(calls) > 0 {
			for id := range open {
				return fmt.Errorf("message %d comes before the result of %s", i, id)
			}
		}
		for _, id := range calls {
			open[id] = true
		}
	}
	for id := range open {
		return fmt.Errorf("the call %s has no result", id)
	}
	return nil
}
