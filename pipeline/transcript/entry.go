package transcript

import (
	"fmt"

	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// An entry is one message of a context in its encoded form.
type entry struct {
	native []byte // valid JSON
	made   *pipeline.Made
}

// entries encodes the context in a format, without messages that have no content left.
func (o Output) entries(f format) ([]entry, error) {
	out := make([]entry, 0, len(o.Items))
	for i, it := range o.Items {
		b, err := Codec{f}.EncodeItem(it)
		if err == nil && b != nil {
			err = check(f, b)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d of the context: %w", i, err)
		}
		if b != nil {
			out = append(out, entry{b, it.Made})
		}
	}
	return out, nil
}

func nativesOf(all []entry) [][]byte {
	out := make([][]byte, len(all))
	for i, e := range all {
		out[i] = e.native
	}
	return out
}

// firstStored returns the JSON value at a path of the first stored message that has it. Made entries before that
// message take their time from it, so that no clock is read.
func firstStored(all []entry, path ...string) []byte {
	for _, e := range all {
		if e.made != nil {
			continue
		}
		if v, ok := rawjson.Root(e.native).Lookup(path...); ok {
			return v.Raw()
		}
	}
	return nil
}
