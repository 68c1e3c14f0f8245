package wire

import (
	"encoding/json"
	"time"

	"precis/internal/store/markers"
	"precis/internal/store/runs"
)

// NewCompactionInput asks for a compaction.
type NewCompactionInput struct {
	Focus         string `json:"focus,omitempty" limit:"focus" doc:"What matters most, in the user's words."`
	Full          bool   `json:"full,omitempty" doc:"Summarize everything, also the last turn."`
	ForceExternal bool   `json:"force_external,omitempty" doc:"Do not use the agent's own model."`
	Prompt        string `json:"prompt,omitempty" limit:"word" doc:"Name of the prompt to use instead of the usual one."`
	Summarizer    string `json:"summarizer,omitempty" limit:"summarizer_list" doc:"The summarizers to try, in order: self,openai/NAME."`
	WaitSeconds   int    `json:"wait_seconds,omitempty" minimum:"0" maximum:"600" doc:"How long to wait for the end of the run."`
}

// OneShotInput is a list of messages to compact.
type OneShotInput struct {
	Format   string                `json:"format" limit:"word" minLength:"1" doc:"Format of the messages. auto: it is detected."`
	Model    ModelBodyInput        `json:"model" doc:"The model that the list is for."`
	Messages []json.RawMessage     `json:"messages" limit:"messages" doc:"Native messages, in order."`
	Meta     []MessageMetaInput    `json:"meta,omitempty" limit:"messages" doc:"One entry for each message, as with an append."`
	System   json.RawMessage       `json:"system,omitempty" limit:"system" doc:"The agent's system prompt, in the format of the messages."`
	Tools    json.RawMessage       `json:"tools,omitempty" limit:"tools" doc:"The agent's tool definitions, in the format of the messages."`
	Settings Object                `json:"settings,omitempty" limit:"settings" doc:"Settings of this compaction."`
	State    map[string]StateValue `json:"state,omitempty" limit:"state_keys" doc:"Live state by key."`
	Focus    string                `json:"focus,omitempty" limit:"focus" doc:"What matters most, in the user's words."`
	Keep     bool                  `json:"keep,omitempty" doc:"Keep the conversation. It can be read under the conversation id of the run."`
}

// OneShot is a compacted list of messages.
type OneShot struct {
	_ struct{} `doc:"A compacted list of messages. If the run applied no summary, messages is the list of the request, trimmed."`

	Messages []json.RawMessage `json:"messages"`
	System   json.RawMessage   `json:"system,omitempty"`
	Stats    Stats             `json:"stats"`
	Run      Run               `json:"run"`
}

// Compaction is an entry of a conversation's list of compactions.
type Compaction struct {
	_ struct{} `doc:"A compaction: a run of precis, or a compaction that the agent did itself."`

	Run    *Run    `json:"run" doc:"The run, or null: the agent compacted itself, or the compaction was imported."`
	Marker *Marker `json:"marker" doc:"The marker that it left, or null."`
}

// CompactionList is a page of compactions.
type CompactionList struct {
	Compactions []Compaction `json:"compactions"`
	Next        string       `json:"next,omitempty" doc:"Cursor of the next page. Left out on the last page."`
}

// Marker is the record that a summary stands for messages.
type Marker struct {
	_ struct{} `doc:"The record in a conversation that a summary stands for messages."`

	ID string `json:"id"`
	MarkerStats
	Status       runs.MarkerStatus `json:"status" enum:"prepared,applied,undone,discarded"`
	Reason       string            `json:"reason,omitempty" doc:"Why the marker was discarded."`
	Origin       markers.Origin    `json:"origin" enum:"ours,agent,imported" doc:"Who compacted: precis (ours), the agent itself, or whoever wrote the imported transcript."`
	TokensBefore int               `json:"tokens_before" doc:"Size of the context before, in tokens."`
	TokensAfter  int               `json:"tokens_after" doc:"Size of the context after, in tokens."`
	Active       bool              `json:"active" doc:"The context starts from this marker."`
	Created      time.Time         `json:"created"`
	Applied      *time.Time        `json:"applied" doc:"When the marker took effect, or null."`
	Ended        *time.Time        `json:"ended" doc:"When the marker was undone or discarded, or null."`
}

// ReportedMarkerInput is a compaction that the agent did itself.
type ReportedMarkerInput struct {
	Summary      json.RawMessage `json:"summary" limit:"summary" doc:"The native message that stands for the covered messages."`
	CoversTo     int64           `json:"covers_to" minimum:"1" doc:"Number of the last message that the summary covers."`
	TokensBefore int             `json:"tokens_before,omitempty" minimum:"0"`
	TokensAfter  int             `json:"tokens_after,omitempty" minimum:"0"`
}

// Undone is the result of an undo.
type Undone struct {
	_ struct{} `doc:"The result of an undo."`

	Marker *Marker `json:"marker" doc:"The marker that the context starts from now, or null: the context is the full history."`
	Undone *Marker `json:"undone" doc:"The marker that was undone."`
}
