package wire

import (
	"encoding/json"
	"time"

	"precis/pipeline"
)

// Model is the agent's model.
type Model struct {
	Vendor        string `json:"vendor" doc:"The vendor's name in the configuration, such as anthropic."`
	Name          string `json:"name" doc:"The vendor's name of the model, such as claude-sonnet-4-5."`
	ContextWindow int    `json:"context_window,omitempty" doc:"Size of the model's window in tokens. 0: the size that is known for the model."`
	MaxOutput     int    `json:"max_output,omitempty" doc:"Maximum output of one request in tokens. This much of the window is kept free. 0: nothing is kept free."`
}

// Conversation is a stored conversation.
type Conversation struct {
	_ struct{} `doc:"A stored conversation."`

	ID             string          `json:"id"`
	Format         string          `json:"format" doc:"Format of the messages, such as anthropic or openai."`
	Model          Model           `json:"model"`
	System         json.RawMessage `json:"system,omitempty" doc:"The agent's system prompt, in the conversation's format. Not in lists."`
	Tools          json.RawMessage `json:"tools,omitempty" doc:"The agent's tool definitions, in the conversation's format. Not in lists."`
	Settings       json.RawMessage `json:"settings,omitempty" doc:"The settings of this conversation alone. Not in lists."`
	Metadata       json.RawMessage `json:"metadata,omitempty" doc:"The client's own data. precis does not read it."`
	HeadSeq        int64           `json:"head_seq" doc:"Number of the last message. 0: there is no message yet."`
	Turns          int64           `json:"turns" doc:"Number of messages that a person wrote."`
	Created        time.Time       `json:"created"`
	ContentDeleted bool            `json:"content_deleted,omitempty" doc:"The content was deleted. Only the records of the conversation's runs are left."`
	State          *State          `json:"state,omitempty" doc:"The current state. Not in lists."`
}

// State is the current state of a conversation.
type State struct {
	_ struct{} `doc:"The current state of a conversation. Sizes are in tokens."`

	UsedTokens    int             `json:"used_tokens" doc:"Size of the next request."`
	Estimated     bool            `json:"estimated" doc:"used_tokens is a local estimate, not a figure of the vendor."`
	Trigger       TriggerDecision `json:"trigger" doc:"The decision that the trigger would make now, with every number that it compares."`
	Hold          string          `json:"hold,omitempty" doc:"Why no automatic run starts now. Left out when nothing prevents one."`
	LearnedWindow int             `json:"learned_window,omitempty" doc:"Size of the model's window as an overflow error of the vendor gave it. Left out when no error did."`
	Marker        *MarkerStats    `json:"marker" doc:"The compaction that the context starts from, or null: the context is the full history."`
	Run           string          `json:"run,omitempty" doc:"The run that is in progress. Left out when there is none."`
	Prepared      string          `json:"prepared,omitempty" doc:"The run whose prepared summary has not taken effect yet. Left out when there is none."`
	ReplyOpen     bool            `json:"reply_open" doc:"The agent's model is generating a reply."`
	Breaker       Breaker         `json:"breaker" doc:"The breaker of the conversation's automatic runs."`
}

// Breaker stops automatic runs of a conversation after several failures in a row.
type Breaker struct {
	_ struct{} `doc:"The breaker stops automatic runs after several failures in a row."`

	Open      bool               `json:"open" doc:"Automatic runs are stopped."`
	Failures  int                `json:"failures" doc:"Number of failures in a row."`
	Opened    *time.Time         `json:"opened" doc:"When the breaker opened, or null: it is closed."`
	ErrorKind pipeline.ErrorKind `json:"error_kind,omitempty" doc:"The error kind of the last failure."`
	Reason    string             `json:"reason,omitempty" doc:"The reason of the last failure."`
}

// ConversationList is a page of conversations.
type ConversationList struct {
	Conversations []Conversation `json:"conversations"`
	Next          string         `json:"next,omitempty" doc:"Cursor of the next page. Left out on the last page."`
}

// NewConversationInput asks for a new conversation.
type NewConversationInput struct {
	ID       string          `json:"id,omitempty" limit:"conversation_id" doc:"The client's own id. A request with the same id and the same body returns the existing conversation. Left out: an id is generated."`
	Format   string          `json:"format" limit:"word" minLength:"1" doc:"Format of all messages of the conversation: anthropic, openai, claude-code…"`
	Model    ModelBodyInput  `json:"model" doc:"The agent's model."`
	System   json.RawMessage `json:"system,omitempty" limit:"system" doc:"The agent's system prompt, in the conversation's format."`
	Tools    json.RawMessage `json:"tools,omitempty" limit:"tools" doc:"The agent's tool definitions, in the conversation's format."`
	Settings Object          `json:"settings,omitempty" limit:"settings" doc:"The settings of this conversation alone."`
	Metadata Object          `json:"metadata,omitempty" limit:"metadata" doc:"The client's own data. precis does not read it."`
}

// ModelBodyInput names the agent's model.
type ModelBodyInput struct {
	Vendor        string `json:"vendor" limit:"word" minLength:"1" doc:"The vendor's name in the configuration: anthropic, openai, xai, google or one of your own."`
	Name          string `json:"name" limit:"word" minLength:"1" doc:"The vendor's name of the model."`
	ContextWindow int    `json:"context_window,omitempty" minimum:"0" doc:"Size of the model's window in tokens. 0: the size that is known for the model."`
	MaxOutput     int    `json:"max_output,omitempty" minimum:"0" doc:"Maximum output of one request in tokens. This much of the window is kept free."`
}

// ConversationPatchInput changes a conversation.
type ConversationPatchInput struct {
	Model    *ModelPatchInput `json:"model,omitempty" doc:"What changes of the model."`
	System   json.RawMessage  `json:"system,omitempty" limit:"system" doc:"The new system prompt. null removes it."`
	Tools    json.RawMessage  `json:"tools,omitempty" limit:"tools" doc:"The new tool definitions. null removes them."`
	Settings Object           `json:"settings,omitempty" limit:"settings" doc:"Merged key by key (RFC 7396): null removes a key."`
	Metadata Object           `json:"metadata,omitempty" limit:"metadata" doc:"Merged key by key, as settings."`
}

// ModelPatchInput changes a conversation's model.
type ModelPatchInput struct {
	Vendor        *string `json:"vendor,omitempty" limit:"word" minLength:"1"`
	Name          *string `json:"name,omitempty" limit:"word" minLength:"1"`
	ContextWindow *int    `json:"context_window,omitempty" minimum:"0" doc:"Size of the window in tokens. A new vendor or name without it resets the size to what is known for the new model."`
	MaxOutput     *int    `json:"max_output,omitempty" minimum:"0"`
}

// NewSettingsInput changes the settings of a tenant.
type NewSettingsInput struct {
	Settings Object `json:"settings" limit:"settings" doc:"The tenant's settings, in the form of a conversation's settings."`
}

// TenantSettings are the settings of all conversations of a tenant.
type TenantSettings struct {
	_ struct{} `doc:"The settings of all conversations of a tenant. They override those of the installation; a conversation's own settings override them."`

	Tenant    string          `json:"tenant"`
	Settings  json.RawMessage `json:"settings" doc:"What the tenant itself sets. An empty object: nothing."`
	Effective json.RawMessage `json:"effective" doc:"The settings that apply to a conversation of the tenant that sets nothing itself. Limits that are off are left out."`
}
