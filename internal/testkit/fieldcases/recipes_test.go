package fieldcases

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// recipes writes out what stands for something long in a case.
type recipes struct{ c fieldCase }

// value returns v with its recipes carried out.
func (r recipes) value(v any) any {
	switch v := v.(type) {
	case []any:
		return r.list(v)
	case object:
		if len(v) == 1 {
			for key, args := range v {
				if strings.HasPrefix(key, "$") {
					return r.recipe(key, args)
				}
			}
		}
		out := object{}
		for k, x := range v {
			out[k] = r.value(x)
		}
		return out
	}
	return v
}

// list puts a list that a recipe gives in the place of the recipe.
func (r recipes) list(list []any) []any {
	out := make([]any, 0, len(list))
	for _, v := range list {
		got := r.value(v)
		if _, was := v.([]any); !was {
			if several, ok := got.([]any); ok {
				out = append(out, several...)
				continue
			}
		}
		out = append(out, got)
	}
	return out
}

func (r recipes) recipe(key string, args any) any {
	list, _ := args.([]any)
	number := func(i, missing int) int {
		if i >= len(list) {
			return missing
		}
		n, _ := list[i].(json.Number).Int64()
		return int(n)
	}
	switch key {
	case "$let":
		return r.value(r.c.Let[args.(string)])
	case "$repeat":
		return strings.Repeat(list[0].(string), number(1, 1))
	case "$filler":
		return r.filler(number(0, 1), number(1, 1), number(2, 1))
	case "$step":
		return r.step()
	case "$wav":
		return base64.StdEncoding.EncodeToString(wav(number(0, 1), number(1, 8000)))
	case "$mp3":
		return base64.StdEncoding.EncodeToString(mp3(number(0, 1)))
	case "$pdf":
		return base64.StdEncoding.EncodeToString(pdf(number(0, 1), number(1, 1000)))
	case "$sse":
		return sse(number(1, 1), list[2].(string), list[3] == true)
	}
	panic("the case has the unknown recipe " + key)
}

// said is a message with a text in the format of the case.
func (r recipes) said(role, text string) any {
	if r.c.Format == "google" {
		if role == "assistant" {
			role = "model"
		}
		return object{"role": role, "parts": []any{object{"text": text}}}
	}
	return object{"role": role, "content": text}
}

// filler returns pairs of user and assistant, of about 400 tokens times the size each.
func (r recipes) filler(first, last, size int) any {
	rooms := []string{"hall", "kitchen", "attic", "cellar", "porch", "study", "garden", "stairs"}
	var out []any
	for n := first; n <= last; n++ {
		var b strings.Builder
		for i := range 15 * size {
			fmt.Fprintf(&b, "In the %s of part %d there are %d shelves, %d hooks and a window to the %s. ",
				rooms[(n+i)%len(rooms)], n, 3+(i*7+n)%11, 1+(i*5+n)%9, rooms[(n*3+i)%len(rooms)])
		}
		question := fmt.Sprintf("Describe part %d of the house.", n)
		out = append(out, r.said("user", question), r.said("assistant", b.String()))
	}
	return out
}

// step returns a call of the tool look and its result, in the format of the case.
func (r recipes) step() any {
	switch r.c.Format {
	case "anthropic":
		return []any{
			object{"role": "assistant", "content": []any{
				object{"type": "tool_use", "id": "toolu_look", "name": "look", "input": object{}},
			}},
			object{"role": "user", "content": []any{
				object{"type": "tool_result", "tool_use_id": "toolu_look", "content": "a lamp"},
			}},
		}
	case "openai-responses":
		return []any{
			object{"type": "function_call", "call_id": "call_look", "name": "look", "arguments": "{}"},
			object{"type": "function_call_output", "call_id": "call_look", "output": "a lamp"},
		}
	case "google":
		return []any{
			object{"role": "model", "parts": []any{object{"functionCall": object{"name": "look", "args": object{}}}}},
			object{"role": "user", "parts": []any{
				object{"functionResponse": object{"name": "look", "response": object{"output": "a lamp"}}},
			}},
		}
	}
	return []any{
		object{"role": "assistant", "content": nil, "tool_calls": []any{object{
			"id": "call_look", "type": "function", "function": object{"name": "look", "arguments": "{}"},
		}}},
		object{"role": "tool", "tool_call_id": "call_look", "content": "a lamp"},
	}
}

// wav is a sound of so many seconds, 16 bit, mono.
func wav(seconds, rate int) []byte {
	size := uint32(seconds * rate * 2)
	b := append([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, 36+size)...)
	b = append(b, "WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(rate))
	b = binary.LittleEndian.AppendUint32(b, uint32(rate*2))
	b = append(b, "\x02\x00\x10\x00data"...)
	b = binary.LittleEndian.AppendUint32(b, size)
	for i := range size {
		b = append(b, byte(i*37+i/251))
	}
	return b
}

// mp3 is a sound of so many seconds at 128 kbit/s and 44.1 kHz.
func mp3(seconds int) []byte {
	const frame = 417
	var b []byte
	for range seconds * 44100 / 1152 {
		b = append(b, 0xff, 0xfb, 0x90, 0xc4)
		b = append(b, make([]byte, frame-4)...)
	}
	return b
}

// pdf is a document of so many pages and about so many bytes.
func pdf(pages, size int) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n")
	var kids []string
	for i := range pages {
		kids = append(kids, fmt.Sprintf("%d 0 R", i+3))
	}
	fmt.Fprintf(&b, "2 0 obj\n<</Type/Pages/Count %d/Kids[%s]>>\nendobj\n", pages, strings.Join(kids, " "))
	for i := range pages {
		fmt.Fprintf(&b, "%d 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>\nendobj\n", i+3)
	}
	fmt.Fprintf(&b, "%d 0 obj\n<</Length %d>>\nstream\n", pages+3, size)
	for i := range size {
		b.WriteByte(byte(i*31 + i/7))
	}
	b.WriteString("\nendstream\nendobj\ntrailer\n<</Root 1 0 R>>\n%%EOF\n")
	return b.Bytes()
}

// sse is a stream of chat completions with a line of reasoning of that many characters.
func sse(chars int, text string, done bool) string {
	var b strings.Builder
	event := func(fields object) {
		all := object{"id": "x", "object": "chat.completion.chunk", "model": "m"}
		maps.Copy(all, fields)
		fmt.Fprintf(&b, "data: %s\n\n", encode(all))
	}
	choice := func(delta object, finish any) object {
		return object{"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}}}
	}
	long := strings.Repeat("a lamp, a door, ", chars/16+1)[:chars]
	event(choice(object{"role": "assistant", "reasoning_content": long}, nil))
	event(choice(object{"content": text}, nil))
	end := choice(object{}, "stop")
	end["usage"] = object{"prompt_tokens": 2100, "completion_tokens": 40, "total_tokens": 2140}
	event(end)
	if done {
		b.WriteString("data: [DONE]\n\n")
	}
	return b.String()
}

// keys counts how often a key occurs in a value.
func keys(v any, key string) int {
	n := 0
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			n += keys(x, key)
		}
	case object:
		for k, x := range v {
			if k == key {
				n++
			}
			n += keys(x, key)
		}
	}
	return n
}

// texts appends all strings of a value, in the order of its lists and of its sorted keys.
func texts(all []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(all, v)
	case []any:
		for _, x := range v {
			all = texts(all, x)
		}
	case object:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			all = texts(all, v[k])
		}
	}
	return all
}
