package transcript

import "strings"

// A sketched is the outline of the beginning of a file: the paths of its keys, such as "messages[].role", and for
// the few keys that name a kind of thing the paths with their values, such as "messages[].role=user".
type sketched map[string]bool

func (s sketched) has(paths ...string) bool {
	for _, p := range paths {
		if s[p] {
			return true
		}
	}
	return false
}

// hasPrefix says whether a string under the path begins with one of the prefixes.
func (s sketched) hasPrefix(path string, prefixes ...string) bool {
	for p := range s {
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

// hasMessages says whether an array at the path holds messages with a role, and none of the marks of formats that
// look much like these: Gemini's parts, the AI SDK's dashed types, an editor's timestamps.
func (s sketched) hasMessages(at string) bool {
	at += "[]"
	if s.has(at+".parts", at+".ts", at+".role.value",
		at+".content[].type=tool-call", at+".content[].type=tool-result", at+".content[].type=reasoning") {
		return false
	}
	return s.has(at+".content", at+".tool_calls") &&
		s.has(at+".role=user", at+".role=assistant", at+".role=system", at+".role=developer", at+".role=tool",
			at+".role=function")
}

const (
	sketchDepth  = 7    // levels of keys that are looked at
	sketchPaths  = 4096 // paths that are kept
	sketchString = 64   // bytes of a string whose value is kept
)

// sketch outlines JSON that may be cut off anywhere, or be damaged: then it ends there.
func sketch(head []byte) sketched {
	out := sketched{}
	var path []string // per open level its own name: "[]", or the key that stands last
	var open []byte
	expectKey := false
	add := func(suffix string) {
		if len(path) <= sketchDepth && len(out) < sketchPaths {
			out[strings.TrimPrefix(strings.Join(path, ""), ".")+suffix] = true
		}
	}
	for i := 0; i < len(head); {
		switch c := head[i]; c {
		case '{', '[':
			open = append(open, c)
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
			open, path = open[:len(open)-1], path[:len(path)-1]
			expectKey = false
			i++
		case ',':
			expectKey = len(open) > 0 && open[len(open)-1] == '{'
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
			case end-i <= sketchString && len(path) > 0 && namesKind(path[len(path)-1]):
				add("=" + unquote(head[i:end]))
			}
			i = end
		default:
			i++
		}
	}
	return out
}

// namesKind says whether the values of a key are few and tell something.
func namesKind(key string) bool {
	switch key {
	case ".type", ".role", ".model", ".uri":
		return true
	}
	return false
}

// cutString gives the end of the string literal at i, -1 when it is not whole or not sound.
func cutString(b []byte, i int) int {
	for j := i + 1; j < len(b); j++ {
		switch b[j] {
		case '\\':
			j++
		case '"':
			if end, _, err := check(b[i : j+1]); err != nil || end != j+1-i {
				return -1
			}
			return j + 1
		}
	}
	return -1
}
