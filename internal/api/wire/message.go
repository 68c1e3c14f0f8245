package wire

import (
	"encoding/json"

	"precis/pipeline"
)

// Message is a stored message of the transcript.
type Message struct {
	_ struct{} `doc:"A stored message of the transcript."`

	Seq     int64           `json:"seq" doc:"Number of the message in the conversation, from 1."`
	ID      string          `json:"id,omitempty" doc:"The client's own id of the message."`
	Native  json.RawMessage `json:"native" doc:"The message in the conversation's format, byte for byte."`
	Role    pipeline.Role   `json:"role"`
	Kind    pipeline.Kind   `json:"kind" doc:"user_info, reminder or synthetic for a user message that no person wrote; empty for an ordinary message."`
	Genuine bool            `json:"genuine" doc:"A person wrote the message."`
	Tokens  int             `json:"tokens" doc:"Size of the message in tokens, estimated."`
	Covered bool            `json:"covered" doc:"In the context a summary stands for the message."`
}

// MessageList is a page of messages.
type MessageList struct {
	Messages []Message `json:"messages"`
	More     bool      `json:"more" doc:"More messages follow: continue with after set to the last seq."`
}

// MessageMetaInput is what a client says about one message.
type MessageMetaInput struct {
	ID   string        `json:"id,omitempty" limit:"message_id" doc:"The client's own id of the message. A message with an id that is already stored is not stored again."`
	Kind pipeline.Kind `json:"kind,omitempty" limit:"word" doc:"user_info, reminder or synthetic, for a message that no person wrote."`
}

// NewMessagesInput appends messages.
type NewMessagesInput struct {
	Messages       []json.RawMessage  `json:"messages" limit:"messages" doc:"Native messages in the conversation's format, in order. They are kept byte for byte."`
	Meta           []MessageMetaInput `json:"meta,omitempty" limit:"messages" doc:"One entry for each message, in the same order; the list may be shorter."`
	Usage          json.RawMessage    `json:"usage,omitempty" limit:"usage" doc:"The vendor's usage object, unchanged, of the request whose answer is the last of the messages."`
	IfSeq          *int64             `json:"if_seq,omitempty" minimum:"0" doc:"The number of the last message that the client knows. If the conversation has another one, the answer is stale_sequence."`
	ContextVersion *int64             `json:"context_version,omitempty" minimum:"0" doc:"stats.version of the context that the request of usage was made from. A figure from before a compaction does not apply after it."`
}

// WholeListInput is the client's whole list of messages.
type WholeListInput struct {
	Messages       []json.RawMessage `json:"messages" limit:"messages" doc:"All native messages that the client holds: the full history, or a context that it was given and what followed."`
	Usage          json.RawMessage   `json:"usage,omitempty" limit:"usage" doc:"The vendor's usage object of the last request, unchanged."`
	ContextVersion *int64            `json:"context_version,omitempty" minimum:"0" doc:"stats.version of the context that the request of usage was made from."`
}

// Appended is the result of an append.
type Appended struct {
	_ struct{} `doc:"The result of an append."`

	FirstSeq   int64   `json:"first_seq" doc:"Number of the first message that was stored. 0: none was."`
	LastSeq    int64   `json:"last_seq" doc:"Number of the last message that was stored. 0: none was."`
	Seqs       []int64 `json:"seqs" doc:"The number of every message of the request, also of those that were already stored."`
	Duplicates int     `json:"duplicates" doc:"How many messages of the request were already stored."`
	HeadSeq    int64   `json:"head_seq" doc:"Number of the conversation's last message."`
	UsedTokens int     `json:"used_tokens" doc:"Size of the next request in tokens."`
	Estimated  bool    `json:"estimated" doc:"used_tokens is a local estimate, not a figure of the vendor."`
	Trigger    Trigger `json:"trigger"`
	Run        *Run    `json:"run,omitempty" doc:"The run that the append started, or that is in progress. Left out when there is none."`
	Applied    *Run    `json:"applied,omitempty" doc:"The run whose prepared summary took effect with the append. Left out when there is none."`
}

// Synced is the result of a sync.
type Synced struct {
	_ struct{} `doc:"The result of a sync."`

	Appended
	Matched int    `json:"matched" doc:"How many messages of the list the conversation already has, including those that precis made."`
	As      string `json:"as" doc:"How the list was read: history for the full history, context for a context that precis made and what followed."`
}

// Trigger is the trigger's decision, with the reason why it had no effect.
type Trigger struct {
	_ struct{} `doc:"The trigger's decision whether a compaction is due."`

	TriggerDecision
	Hold string `json:"hold,omitempty" doc:"Why a compaction that is due does not start automatically. Left out when nothing prevents it."`
}

// TriggerDecision is the trigger's decision with every number that it compared. It has the fields of
// pipeline.TriggerDecision, to be converted from it.
type TriggerDecision struct {
	Fired         bool                 `json:"fired" doc:"A run starts."`
	Kind          pipeline.TriggerKind `json:"kind,omitempty" doc:"What fired. While automatic compaction is off (trigger.auto), what would have fired: for an agent that starts its compactions itself."`
	Reason        string               `json:"reason" doc:"The decision in one sentence with its numbers."`
	Used          int                  `json:"used" doc:"Size of the next request. A compaction is due when used is at least limit. In tokens, as all sizes here."`
	Limit         int                  `json:"limit" doc:"The size from which a compaction is due."`
	Window        int                  `json:"window" doc:"Size of the model's window."`
	Estimate      int                  `json:"estimate" doc:"The local estimate of the size, calibrated."`
	ServerTokens  int                  `json:"server_tokens" doc:"The vendor's figure of the size. 0: there is none."`
	Estimated     bool                 `json:"estimated" doc:"used is the local estimate, not a figure of the vendor."`
	WindowGuessed bool                 `json:"window_guessed" doc:"The model is not known: window is a default."`
	Implausible   bool                 `json:"implausible" doc:"The vendor's figure is implausible and was not used."`
	Turns         int                  `json:"turns" doc:"Number of turns that can be summarized."`
	TurnLimit     int                  `json:"turn_limit" doc:"The number of turns from which a compaction is due. 0: turns do not count."`
	StartLimit    int                  `json:"start_limit,omitempty" doc:"The size from which a summary is prepared in the background. Left out when it is not set."`
	ApplyLimit    int                  `json:"apply_limit,omitempty" doc:"The size from which a prepared summary takes effect. Left out when it is not set."`
	Prepare       bool                 `json:"prepare,omitempty" doc:"The run only prepares a summary."`
	ApplyPrepared bool                 `json:"apply_prepared,omitempty" doc:"A prepared summary takes effect now, and no run starts."`
	OverLimit     bool                 `json:"over_limit" doc:"used is at least limit, whether or not a run may start."`
	Calibration   float64              `json:"calibration,omitempty" doc:"The ratio of real to estimated tokens. Left out when it is not known."`
}
