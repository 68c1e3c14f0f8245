package transcript

import (
	"errors"
	"io"

	"precis/pipeline"
	"precis/pipeline/transcript/jsonstream"
	"precis/pipeline/transcript/rawjson"
)

// DefaultMaxMessageBytes bounds one message: more than any vendor takes as a whole request (Anthropic: 32 MB).
const DefaultMaxMessageBytes = 64 << 20

// Options configures a Decoder.
type Options struct {
	// Format is the format of the file, Auto or empty to detect it.
	Format Format
	// Lenient skips damaged lines and messages with a Note each, instead of ending with an error.
	Lenient bool
	// MaxMessageBytes bounds a single message or line, in bytes; 0 means DefaultMaxMessageBytes.
	MaxMessageBytes int
}

// Decoder reads a transcript item by item. Its memory does not grow with the file: it is bounded by the largest
// message, plus 64 MiB of one conversation's messages if their meaning depends on a later part of the file, or plus
// 128 MiB of a log in which each request repeats the one before.
type Decoder struct {
	format Format
	src    source
	queue  []Item
	err    error
}

// A source is the reader of a format. A step reads some of the file and emits any number of items. It returns io.EOF
// at the end, and a *jsonstream.Damage for an error in the file.
type source interface {
	step(emit func(Item)) error
}

// NewDecoder returns a decoder of a transcript. It fails for an empty one and, with Auto, for a format that it does
// not recognize.
func NewDecoder(r io.Reader, o Options) (*Decoder, error) {
	s, err := jsonstream.New(r)
	if errors.Is(err, jsonstream.ErrUTF16) {
		return nil, pipeline.Errorf(pipeline.BadRequest, "the transcript is UTF-16; convert it to UTF-8")
	}
	if err != nil {
		return nil, err
	}
	head := s.Window()
	if rawjson.SkipSpace(head, 0) == len(head) {
		return nil, pipeline.Errorf(pipeline.BadRequest, "the transcript is empty")
	}
	if o.Format == "" || o.Format == Auto {
		if o.Format, err = Detect(head); err != nil {
			return nil, err
		}
	}
	for _, row := range formats {
		if row.name == o.Format {
			return &Decoder{format: row.format.name(), src: row.open(s, o)}, nil
		}
	}
	_, err = CodecFor(o.Format)
	return nil, err
}

// Format returns the format of the file, detected or given.
func (d *Decoder) Format() Format { return d.format }

// Next returns the next item, and io.EOF after the last. An error in the file is a *pipeline.Error of kind
// bad_request that names the line; no item comes after it.
func (d *Decoder) Next() (Item, error) {
	for len(d.queue) == 0 {
		if d.err != nil {
			return Item{}, d.err
		}
		err := d.src.step(func(it Item) { d.queue = append(d.queue, it) })
		var broken *jsonstream.Damage
		if errors.As(err, &broken) {
			err = pipeline.Errorf(pipeline.BadRequest, "the transcript is damaged: %w", broken)
		}
		d.err = err
	}
	it := d.queue[0]
	d.queue[0] = Item{}
	d.queue = d.queue[1:]
	return it, nil
}

// Conversation is one complete conversation of a file.
type Conversation struct {
	Meta
	// Messages in order, Seq from 1.
	Messages []pipeline.Message
	// Compactions in order, each with the number of messages before it.
	Compactions []RecordedCompaction
	// Usage in order, each with the number of messages that it covers.
	Usage []RecordedUsage
}

// RecordedCompaction is a Compaction and its place.
type RecordedCompaction struct {
	Compaction
	// Before is the number of messages before it: it covers Seq 1 to Before.
	Before int
}

// RecordedUsage is a Usage and its place.
type RecordedUsage struct {
	Usage
	// Covers is the Seq of the last message that the figure includes.
	Covers int
}

// File is a whole transcript.
type File struct {
	Format        Format
	Conversations []Conversation
	Notes         []Item
}

// Read decodes a whole transcript into memory.
func Read(r io.Reader, o Options) (File, error) {
	d, err := NewDecoder(r, o)
	if err != nil {
		return File{}, err
	}
	f := File{Format: d.Format()}
	var c Conversation
	for {
		it, err := d.Next()
		if err == io.EOF {
			return f, nil
		}
		if err != nil {
			return f, err
		}
		switch {
		case it.Start != nil:
			c = Conversation{Meta: *it.Start}
		case it.Message != nil:
			m := *it.Message
			m.Seq = int64(len(c.Messages) + 1)
			c.Messages = append(c.Messages, m)
		case it.Compaction != nil:
			c.Compactions = append(c.Compactions, RecordedCompaction{*it.Compaction, len(c.Messages)})
		case it.Usage != nil:
			c.Usage = append(c.Usage, RecordedUsage{*it.Usage, len(c.Messages)})
		case it.Note != nil:
			f.Notes = append(f.Notes, it)
		case it.End != nil:
			c.Meta = *it.End
			f.Conversations = append(f.Conversations, c)
			c = Conversation{}
		}
	}
}
