package rawjson

import "strings"

// An Outline is the set of key paths at the beginning of a file, such as "messages[].role". For the few keys whose
// value names a kind of thing (type, role, model, uri) it also has the path with the value: "messages[].role=user".
// That of the first element of an array is there once more with the element's number: "messages[0].role=user".
type Outline map[string]bool

// Has reports whether any of the paths is there.
func (o Outline) Has(paths ...string) bool {
	for _, p := range paths {
		if o[p] {
			return true
		}
	}
	return false
}

// HasPrefix reports whether a string at the path begins with one of the prefixes.
func (o Outline) HasPrefix(path string, prefixes ...string) bool {
	for p := range o {
		if v, ok := strings.CutPrefix(p, path+"="); ok {
			for _, prefix := range prefixes {
				if strings.HasPrefix(v, prefix) {
					return true
				}
			}
		}
	}
	return false
}

const (
	outlineDepth  = 7    // levels of keys that are read
	outlinePaths  = 4096 // paths that are kept
	outlineString = 64   // bytes of a string whose value is kept
)

// OutlineOf outlines JSON that may be cut off anywhere. It stops at the first damage.
func OutlineOf(head []byte) Outline {
	out := Outline{}
	var path []string // per open level its own name: "[]", or the last key
	var open []byte
	var before []int // per open level the number of commas so far
	expectKey := false
	add := func(suffix string) {
		if len(path) <= outlineDepth && len(out) < outlinePaths {
			out[strings.TrimPrefix(strings.Join(path, ""), ".")+suffix] = true
		}
	}
	for i := 0; i < len(head); {
		switch c := head[i]; c {
		case '{', '[':
			open, before = append(open, c), append(before, 0)
			name := "[]"
			if c == '{' {
				name = ""
			}
			path = append(path, name)
			expectKey = c == '{'
			i++
		case '}', ']':
			if len(open) == 0 {
				return out
			}
			open, path, before = open[:len(open)-1], path[:len(path)-1], before[:len(before)-1]
			expectKey = false
			i++
		case ',':
			if len(open) > 0 {
				before[len(before)-1]++
				expectKey = open[len(open)-1] == '{'
			}
			i++
		case '"':
			end := cutString(head, i)
			if end < 0 {
				return out
			}
			switch {
			case expectKey:
				path[len(path)-1] = "." + unquote(head[i:end])
				expectKey = false
				add("")
			case end-i <= outlineString && len(path) > 0 && namesKind(path[len(path)-1]):
				value := "=" + unquote(head[i:end])
				add(value)
				if n := len(path) - 2; n >= 0 && path[n] == "[]" && before[n] == 0 {
					path[n] = "[0]"
					add(value)
					path[n] = "[]"
				}
			}
			i = end
		default:
			i++
		}
	}
	return out
}

// namesKind reports whether the values of a key are few and name a kind of thing.
func namesKind(key string) bool {
	switch key {
	case ".type", ".role", ".model", ".uri":
		return true
	}
	return false
}

// cutString returns the end of the string literal at i, -1 for one that is cut off or not valid.
func cutString(b []byte, i int) int {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			if end, err := Prefix(b[i : j+1]); err != nil || end != j+1-i {
				return -1
			}
			return j + 1
		}
	}
	return -1
}
