package anthropic

import (
	"precis/pipeline/transcript/rawjson"
)

// MaxMarks is the number of cache marks that a request may have.
const MaxMarks = 4

// A cacheMark is a cache_control key of one of the documents of a request.
type cacheMark struct {
	doc    int
	holder rawjson.Value // the object that has the key
	hour   bool
}

// LimitMarks returns the documents of a request with only the cache marks that the API takes: at most MaxMarks, the
// newest of them, and none of five minutes in front of one of an hour. The documents are the tools, the system prompt
// and each message, in this order; a document without surplus marks is returned itself.
func LimitMarks(docs ...[]byte) [][]byte {
	var marks []cacheMark
	for i, doc := range docs {
		if len(doc) > 0 {
			marks = appendMarks(marks, i, rawjson.Root(doc))
		}
	}
	surplus := map[int][]rawjson.Splice{}
	kept, hour := 0, false
	for i := len(marks) - 1; i >= 0; i-- {
		m := marks[i]
		if kept < MaxMarks && (m.hour || !hour) {
			kept, hour = kept+1, hour || m.hour
			continue
		}
		short, _ := m.holder.DropKeys(func(key string, _ rawjson.Value) bool { return key == cacheControl })
		surplus[m.doc] = append(surplus[m.doc], m.holder.Replace(short))
	}
	if len(surplus) == 0 {
		return docs
	}
	out := make([][]byte, len(docs))
	for i, doc := range docs {
		out[i] = doc
		for _, s := range surplus[i] { // from the last on, so that the places of the others stay
			out[i] = rawjson.Apply(out[i], s)
		}
	}
	return out
}

const cacheControl = "cache_control"

// appendMarks appends the marks of a value: of a tool, a block of the system prompt, a content block, or a block in the
// content of a result. Marks inside of the input of a call are the model's words.
func appendMarks(marks []cacheMark, doc int, v rawjson.Value) []cacheMark {
	if v.IsArray() {
		for _, el := range v.Elements() {
			marks = appendMarks(marks, doc, el)
		}
		return marks
	}
	if !v.IsObject() {
		return marks
	}
	if content := v.Get("content"); content.IsArray() {
		marks = appendMarks(marks, doc, content)
	}
	if at := v.Get(cacheControl); at.IsObject() {
		marks = append(marks, cacheMark{doc, v, at.Get("ttl").Text() == "1h"})
	}
	return marks
}
