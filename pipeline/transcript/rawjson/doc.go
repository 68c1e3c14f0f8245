// Package rawjson reads values from JSON text and edits the text without changing any other byte.
//
// A Value is a place in a document. It is found by key or path, read as a Go value, and replaced by splicing other text
// into a copy of the document:
//
//	doc := []byte(`{"role": "user",  "content": "hello"}`)
//	if err := rawjson.Check(doc); err != nil { … }
//	content := rawjson.Root(doc).Get("content")
//	edited := content.With(rawjson.Quote("goodbye")) // {"role": "user",  "content": "goodbye"}
//
// Everything but Check, Prefix, Scanner and OutlineOf expects text that Check accepts and may panic on other text.
// Of a duplicate key the last value counts, as for encoding/json.
package rawjson
