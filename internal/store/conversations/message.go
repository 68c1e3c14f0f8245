package conversations

import (
	"encoding/json"
	"math"
	"time"

	"precis/internal/store/db"
	"precis/pipeline"
)

// Validate returns an ErrInvalid for a message that cannot be appended.
func (m NewMessage) Validate() error {
	switch {
	case m.ClientID != "" && !db.PossibleID(m.ClientID, 512):
		return db.Invalidf("a client id has at most 512 bytes of UTF-8 and no control characters")
	case m.Role != "system" && m.Role != "user" && m.Role != "assistant" && m.Role != "tool":
		return db.Invalidf("role %q: must be system, user, assistant or tool", m.Role)
	case m.Kind != "" && !db.PossibleID(string(m.Kind), 64):
		return db.Invalidf("kind %q", m.Kind)
	case len(m.Native) == 0:
		return db.Invalidf("the message is empty")
	case len(m.Native) > MaxMessageBytes:
		return db.Invalidf("the message has %d bytes, the maximum is %d", len(m.Native), MaxMessageBytes)
	case m.Chars < 0 || m.Tokens < 0 || m.Chars > math.MaxInt32 || m.Tokens > math.MaxInt32:
		return db.Invalidf("chars %d, tokens %d: must be 0 to %d", m.Chars, m.Tokens, math.MaxInt32)
	}
	return nil
}

// MaxMessageBytes bounds one message. PostgreSQL allows values of 1 GB, and needs twice that in memory.
const MaxMessageBytes = 256 << 20

// NewMessage is a message to append: what arrived, and what its codec found in it.
type NewMessage struct {
	// ClientID is the client's own id, "": none. Appending the same id again adds nothing.
	ClientID string
	Role     pipeline.Role
	Kind     pipeline.Kind
	// Genuine is pipeline.Message.Genuine.
	Genuine bool
	// Chars are Unicode code points, Tokens a local estimate.
	Chars, Tokens int
	// Native is the message as it arrived, any bytes.
	Native []byte
	// Fingerprint is the hash of Native's JSON value, however it is formatted. Zero: not known, so that a client's
	// whole list is compared message by message.
	Fingerprint db.Hash
}

// Message is a stored message. It has no parts: those are decoded from Native.
type Message struct {
	Seq      int64
	ClientID string
	Role     pipeline.Role
	Kind     pipeline.Kind
	Genuine  bool
	// Chars are Unicode code points, Tokens a local estimate.
	Chars, Tokens int
	Native        json.RawMessage
	// Chain commits to this message and all before it, see Chain.
	Chain db.Hash
	// Sums are over the conversation up to and including this message.
	Sums    Sums
	Created time.Time
	// Pruned is when its content was replaced by a placeholder, zero: it was not.
	Pruned time.Time
}

// Pipeline returns the message in the pipeline's type, without parts.
func (m Message) Pipeline() pipeline.Message {
	return pipeline.Message{Seq: m.Seq, ID: m.ClientID, Role: m.Role, Kind: m.Kind, Native: m.Native, Tokens: m.Tokens}
}
