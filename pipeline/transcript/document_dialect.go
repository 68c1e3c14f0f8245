package transcript

import (
	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// A dialect is what differs between the formats whose files are JSON documents with arrays of messages.
type dialect struct {
	format format
	// arrays are the keys of the array of messages, outer those of one that only the outermost object has; none:
	// "messages", and "history" and "traj".
	arrays, outer []string
	// response is the one of outer whose object is a response itself, with usage of its own.
	response string
	// wrapper names the kind of file from the object around the messages; arrayKey is the key of their array.
	wrapper func(b []byte, outer rawjson.Value, arrayKey string) string
	// clean makes a message of a file into one that the API takes; answered says that the assistant has spoken.
	clean func(source string, native []byte, answered bool) cleaned
	// envelope makes the request object of a wrapped conversation; m has what is known of it.
	envelope func(b []byte, outer rawjson.Value, m *Meta)
	// request reads the facts of a request object into m.
	request func(b []byte, v rawjson.Value, m *Meta)
	// answer reads a recorded response: its messages as the next request would hold them, and its usage.
	answer func(response []byte) (natives [][]byte, usage *Usage)
	// bare reports whether an array at the top is one of messages, nil: when they have roles.
	bare func(rawjson.Outline) bool
	// text returns the place of messages that are a plain string, and the message that it stands for; nil: there
	// are none.
	text func(b []byte, v rawjson.Value) (at rawjson.Value, message []byte)
	// summary returns the summary that a message holds of those before it, for formats that have such; answered
	// says that the assistant has spoken.
	summary func(m pipeline.Message, answered bool) (pipeline.Message, bool)
	// follows reports whether a request of a log continues an earlier one with that response, without repeating its
	// messages; cut is the key by which it refers to it. Nil: none does.
	follows func(request []byte, v rawjson.Value, messages []rawMessage, response []byte) (cut string, ok bool)
}

// cleaned is a message of a file, made fit for its API.
type cleaned struct {
	native []byte
	kind   pipeline.Kind
	usage  *Usage
	cut    []string // keys that were cut out
	skip   string   // why it is not a message of the API; empty: it is
	role   string   // for skip
}

// rawMessage is a message as it stands in the file.
type rawMessage struct {
	native []byte
	line   int
	answer bool // a recorded response: it is clean, and usage is its own
	usage  *Usage
}
