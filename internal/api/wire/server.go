package wire

import (
	"encoding/json"
	"time"

	"precis/internal/store/timeline"
)

// Code is a stable word for an error.
type Code string

// Problem is the problem document (RFC 9457) that answers every failed request.
type Problem struct {
	Type       string       `json:"type" doc:"Where the code is explained."`
	Title      string       `json:"title" doc:"The HTTP status in words."`
	Status     int          `json:"status" doc:"The HTTP status."`
	Code       Code         `json:"code" doc:"A stable word for the error, for programs to decide by."`
	Detail     string       `json:"detail" doc:"What is wrong, and what to do."`
	Errors     []FieldError `json:"errors,omitempty" doc:"The fields at fault."`
	MoreErrors int          `json:"more_errors,omitempty" doc:"How many more fields are at fault. Left out when errors lists all of them."`
	RequestID  string       `json:"request_id,omitempty" doc:"The id of the request in the server's log."`
}

// FieldError is a field of a request that is at fault.
type FieldError struct {
	Location string `json:"location" doc:"Path of the field, such as body.messages[2], query.limit or header.Idempotency-Key."`
	Message  string `json:"message" doc:"What is wrong with it."`
}

// Event is an entry of a conversation's timeline.
type Event struct {
	Seq     int64           `json:"seq" doc:"Numbers the events of a conversation from 1, without gaps. It is the id of the server-sent event."`
	Kind    timeline.Kind   `json:"kind" enum:"trigger,stage,attempt,prepared,applied,undone,discarded,finished,warning" doc:"The event's kind, also its name in the stream."`
	Run     string          `json:"run,omitempty" doc:"The run that the event belongs to."`
	Created time.Time       `json:"created"`
	Data    json.RawMessage `json:"data" doc:"Figures of the event; no text of the conversation."`
}

// Alive is the answer of /healthz.
type Alive struct {
	Status  string `json:"status" enum:"ok"`
	Version string `json:"version" doc:"The build."`
}

// Ready is the answer of /readyz.
type Ready struct {
	Status string  `json:"status" enum:"ready,not_ready"`
	Checks []Check `json:"checks"`
}

// Check says whether one thing that precis depends on works.
type Check struct {
	Name   string `json:"name" enum:"server,postgres,temporal,worker"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty" doc:"What is wrong. The log has the error."`
}
