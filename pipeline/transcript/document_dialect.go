package transcript

import (
	"precis/pipeline"
	"precis/pipeline/transcript/rawjson"
)

// A dialect has the differences between the formats whose files are JSON documents with arrays of messages.
type dialect struct {
	format format
	// arrays are the keys of the array of messages, outer the keys of one that only the outermost object has. The
	// defaults are "messages", and "history" and "traj".
	arrays, outer []string
	// response is the key of outer whose object is itself a response with usage.
	response string
	// wrapper names the kind of file from the object around the messages; arrayKey is the key of their array.
	wrapper func(b []byte, outer rawjson.Value, arrayKey string) string
	// clean makes a message of a file into one that the API takes; answered is true after the first message of the
	// assistant.
	clean func(source string, native []byte, answered bool) cleaned
	// envelope makes the request object of a wrapped conversation that m describes.
	envelope func(b []byte, outer rawjson.Value, m *Meta)
	// request reads model, system prompt, tools and limits of a request object into m.
	request func(b []byte, v rawjson.Value, m *Meta)
	// answer reads a recorded response: its messages as the next request would hold them, and its usage.
	answer func(response []byte) (natives [][]byte, usage *Usage)
	// bare reports whether an array at the top is one of messages; nil accepts elements with roles.
	bare func(rawjson.Outline) bool
	// text returns the value of messages that are written as a plain string, and the message that it means; nil if
	// the format has none.
	text func(b []byte, v rawjson.Value) (at rawjson.Value, message []byte)
	// summary returns the summary of earlier messages that a message holds, for formats that have such messages;
	// answered is true after the first message of the assistant.
	summary func(m pipeline.Message, answered bool) (pipeline.Message, bool)
	// follows reports whether a request of a log continues an earlier one with that response, without repeating its
	// messages; cut is the key that refers to the response. Nil means that no request does.
	follows func(request []byte, v rawjson.Value, messages []rawMessage, response []byte) (cut string, ok bool)
}

// cleaned is a message of a file in the form that its API takes.
type cleaned struct {
	native []byte
	kind   pipeline.Kind
	usage  *Usage
	cut    []string // keys that were cut out
	skip   string   // why it is not a message of the API; empty if it is
	role   string   // for skip
}

// rawMessage is a message as the file has it.
type rawMessage struct {
	native []byte
	line   int
	answer bool // a recorded response, which needs no cleaning and has its own usage
	usage  *Usage
}
