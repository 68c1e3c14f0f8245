package transcript

import (
	"precis/pipeline"
)

// Output is one conversation to write: its metadata and its context.
type Output struct {
	Meta  Meta
	Items []pipeline.ContextItem
	// Sendable says that Items are a whole context as pipeline.BuildContext builds it, which an API accepts: a request
	// that its API would refuse is then an error, and not written.
	Sendable bool
	// Trigger and TokensBefore are written into the record of the compaction, in files that have a place for them:
	// "auto" or "manual" ("" is manual), and the size of the context before, in tokens, 0 when unknown.
	Trigger      string
	TokensBefore int
}

// HasSummary reports whether the context contains a summary.
func (o Output) HasSummary() bool {
	for _, it := range o.Items {
		if it.Made != nil && it.Made.Kind == pipeline.KindSummary || it.Message != nil &&
			it.Message.Kind == pipeline.KindSummary {
			return true
		}
	}
	return false
}

// File returns the file of the conversation for a format that has files of its own. The messages must be of that
// format; a chat that Gemini CLI saved contains messages of its API.
func (o Output) File(f Format) ([]byte, error) {
	c, err := CodecFor(f)
	if err != nil {
		return nil, err
	}
	w, ok := c.format.(writer)
	if !ok || o.Meta.Format != f && (f != GeminiCLI || o.Meta.Format != Google) {
		return nil, o.Meta.Format.NoWayTo(f)
	}
	return w.write(o)
}
