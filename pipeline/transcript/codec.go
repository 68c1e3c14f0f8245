package transcript

import (
	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/layout"
	"precis/pipeline/transcript/rawjson"
)

// A format implements one transcript format. It has no state.
type format interface {
	// name is the format's name for the HTTP API and on the command line.
	name() Format
	// detect reports whether a file that begins with the outline has the format.
	detect(rawjson.Outline) bool
	// open returns the reader of a file.
	open(*jsonstream.Reader, Options) source
	// read fills l from its message, which is valid JSON.
	read(l *layout.Layout) error
	// message returns the message of a layout that was read, with role, kind and id from the format's own fields.
	message(l *layout.Layout) pipeline.Message
	// Make implements Codec.Make.
	Make(m pipeline.Made) ([]byte, error)
}

// Optional interfaces of formats.
type (
	// A writer writes files of its own, in place of requests of an API.
	writer interface {
		write(Output) ([]byte, error)
	}
	// A checker has messages that may be more than one JSON object.
	checker interface {
		check(native []byte) error
	}
	// An amender changes a message after edits were applied.
	amender interface {
		amend(l *layout.Layout, edits []pipeline.Edit, out []byte) ([]byte, error)
	}
	// A wrapper has messages that contain those of its API.
	wrapper interface {
		apiMessage(native []byte) ([]byte, error)
	}
	// A joiner has files with entries for several messages.
	joiner interface {
		join(natives [][]byte) ([][]byte, error)
	}
	// An addresser has images and files in a form that differs from all APIs.
	addresser interface {
		address(p pipeline.Part) string
	}
)

// A Codec reads and writes single messages of one format. CodecFor returns the one of a format; the zero Codec is not
// usable.
type Codec struct{ format format }

// CodecFor returns the codec of a format. The error for an unknown format names the known ones.
func CodecFor(f Format) (Codec, error) {
	for _, row := range formats {
		if row.name == f {
			return Codec{row.format}, nil
		}
	}
	return Codec{}, pipeline.Errorf(pipeline.BadRequest, "unknown format %q; the formats are %s", f, names())
}

// Format returns the format of the codec's messages.
func (c Codec) Format() Format { return c.format.name() }

// Decode reads a stored message. The result's Native is native itself, not a copy. Seq and Tokens stay empty, and so
// does ID, unless the message carries an id itself.
func (c Codec) Decode(native []byte) (pipeline.Message, error) {
	if err := check(c.format, native); err != nil {
		return pipeline.Message{}, err
	}
	return decode(c.format, native)
}

// Encode returns the bytes of m.Native with the edits applied: only the edited values differ. Without edits it
// returns m.Native itself. If the edits leave no content to send, it returns nil without an error.
func (c Codec) Encode(m pipeline.Message, edits []pipeline.Edit) ([]byte, error) {
	if len(edits) == 0 {
		return m.Native, nil
	}
	if err := check(c.format, m.Native); err != nil {
		return nil, err
	}
	l, err := layoutOf(c.format, m.Native)
	if err != nil {
		return nil, err
	}
	out, err := l.Edit(edits)
	if a, ok := c.format.(amender); ok && err == nil && out != nil {
		return a.amend(l, edits, out)
	}
	return out, err
}

// Make writes a message that the pipeline made in the format.
func (c Codec) Make(m pipeline.Made) ([]byte, error) { return c.format.Make(m) }

// HoldsAPIMessages reports whether the format's messages contain those of the vendor's API: see APIMessage.
func (c Codec) HoldsAPIMessages() bool {
	_, ok := c.format.(wrapper)
	return ok
}

// APIMessage returns the message of the vendor's API that a message of the format contains, nil if no part of it is
// sent to the vendor. It is for formats for which HoldsAPIMessages is true.
func (c Codec) APIMessage(native []byte) ([]byte, error) {
	if err := check(c.format, native); err != nil {
		return nil, err
	}
	return c.format.(wrapper).apiMessage(native)
}

// HasOwnAddresses reports whether images and files have a form that differs from all APIs: see Address.
func (c Codec) HasOwnAddresses() bool {
	_, ok := c.format.(addresser)
	return ok
}

// Address returns the address of the content of an image or a file part: a data URL for content in the part itself,
// "" when unknown. It is for formats for which HasOwnAddresses is true.
func (c Codec) Address(p pipeline.Part) string { return c.format.(addresser).address(p) }

// FileEntries converts encoded messages to entries of a file of the format.
func (c Codec) FileEntries(natives [][]byte) ([][]byte, error) {
	if j, ok := c.format.(joiner); ok {
		return j.join(natives)
	}
	return natives, nil
}

// check returns an error unless native can be a message of the format.
func check(f format, native []byte) error {
	err := error(nil)
	if c, ok := f.(checker); ok {
		err = c.check(native)
	} else {
		err = rawjson.Check(native)
	}
	if err != nil {
		return layout.Errorf(string(f.name()), "%v", err)
	}
	return nil
}

// decode reads a message that is known to be valid JSON.
func decode(f format, native []byte) (pipeline.Message, error) {
	l, err := layoutOf(f, native)
	if err != nil {
		return pipeline.Message{}, err
	}
	return f.message(l), nil
}

// layoutOf returns the layout of a message that is known to be valid JSON.
func layoutOf(f format, native []byte) (*layout.Layout, error) {
	l := layout.New(string(f.name()), native)
	if _, several := f.(checker); !several && !rawjson.Root(native).IsObject() {
		return nil, l.Errorf("the message is not a JSON object")
	}
	return l, f.read(l)
}
