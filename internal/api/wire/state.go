package wire

import (
	"encoding/json"
	"time"
)

// StateValue is a value of the live state: a text or a list of items.
type StateValue struct {
	Text  *string           `json:"text,omitempty" limit:"state_text" doc:"The value as a text."`
	Items []json.RawMessage `json:"items,omitempty" limit:"state_items" items:"state_item" doc:"The value as a list, each item on its own line: strings, or objects such as {\"text\":…,\"status\":…}."`
}

// StateEntry is the current value of a key of the live state.
type StateEntry struct {
	_ struct{} `doc:"The current value of a key of the live state."`

	Key string `json:"key"`
	StateValue
	Version int64     `json:"version" doc:"Counts the writes of the key, from 1."`
	Updated time.Time `json:"updated"`
}

// StateList is the live state of a conversation.
type StateList struct {
	State []StateEntry `json:"state"`
}
