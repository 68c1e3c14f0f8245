package audit

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"precis/internal/store"
	"precis/internal/store/evidence"
	"precis/internal/store/seals"
)

// Head is the head of a conversation's seals as it is published: one line of JSON. Kept outside of the database, it
// proves later that nothing up to it was rewritten or removed.
type Head struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	// Seals is the number of seals, Chain the hash that commits to all of them.
	Seals int64      `json:"seals"`
	Chain store.Hash `json:"chain"`
	// Messages is the number of messages. Deleted is when the content was deleted, zero if it was not.
	Messages int64     `json:"messages"`
	Deleted  time.Time `json:"deleted,omitzero"`
	// At is when the head was read.
	At time.Time `json:"at"`
	// Signature is Ed25519 over the line without it, empty without audit.signing_key.
	Signature []byte `json:"signature,omitempty"`
}

func (h Head) ref() store.ConversationRef {
	return store.ConversationRef{Tenant: h.Tenant, ID: h.Conversation}
}

// signed returns what the signature is over.
func (h Head) signed() ([]byte, error) {
	h.Signature = nil
	text, err := json.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode a head: %w", err)
	}
	return append([]byte("precis head 1\n"), text...), nil
}

// Publish selects the heads to publish.
type Publish struct {
	evidence.Filter
	// Key signs the heads, nil: they are not signed.
	Key ed25519.PrivateKey
	// SignSeals also signs the last seal of each conversation in the database, for conversations that were sealed
	// before there was a key. Verify them before.
	SignSeals bool
}

// Heads calls put with the head of every conversation that is selected, in the order of their creation.
func (p Publish) Heads(ctx context.Context, s *store.Store, put func(Head) error) error {
	for key := int64(0); ; {
		page, err := s.Evidence.Heads(ctx, p.Filter, key, 0)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, c := range page {
			key = c.Key
			if p.SignSeals {
				if err := s.Evidence.SignHead(ctx, c.Ref); err != nil {
					return err
				}
			}
			h := Head{
				Tenant: c.Ref.Tenant, Conversation: c.Ref.ID, Seals: c.Head.Seals, Chain: c.Head.Chain,
				Messages: c.Messages, Deleted: c.Deleted.UTC(), At: time.Now().UTC(),
			}
			if p.Key != nil {
				text, err := h.signed()
				if err != nil {
					return err
				}
				h.Signature = ed25519.Sign(p.Key, text)
			}
			if err := put(h); err != nil {
				return err
			}
		}
	}
}

// HeadsReport is the result of comparing a store with published heads.
type HeadsReport struct {
	// Heads counts the heads that were compared, Deleted the conversations among them whose content was deleted, with a
	// tombstone, since they were published.
	Heads   int `json:"heads"`
	Deleted int `json:"deleted"`
	// Failed counts the heads that the store does not extend; Failures are the first of them.
	Failed   int       `json:"failed"`
	Failures []Failure `json:"failures,omitempty"`
}

// CheckHeads is the name of the check in the failures of a HeadsReport.
const CheckHeads = "heads"

// maxHeadLine bounds a line of published heads, in bytes.
const maxHeadLine = 1 << 16

// VerifyHeads compares the store with published heads, a line each. A conversation must have the seals of its head, and
// may have more since. With a key, heads without a signature of the key are failures too. The error is
// store.ErrInvalid, with the line, if the file cannot be read.
func VerifyHeads(ctx context.Context, s *store.Store, key ed25519.PublicKey, r io.Reader) (HeadsReport, error) {
	var out HeadsReport
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxHeadLine)
	at := 0
	for lines.Scan() {
		at++
		if len(lines.Bytes()) == 0 {
			continue
		}
		var h Head
		if err := json.Unmarshal(lines.Bytes(), &h); err != nil || h.Conversation == "" || h.Seals < 1 {
			return out, store.Invalidf("line %d is not a head that `precis heads` printed", at)
		}
		if err := out.compare(ctx, s, key, h); err != nil {
			return out, err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return out, store.Invalidf("line %d is longer than a head can be", at+1)
	} else if err != nil {
		return out, fmt.Errorf("read the heads: %w", err)
	}
	if out.Heads == 0 {
		return out, store.Invalidf("there is no head in it")
	}
	return out, nil
}

func (o *HeadsReport) compare(ctx context.Context, s *store.Store, key ed25519.PublicKey, h Head) error {
	o.Heads++
	if key != nil {
		text, err := h.signed()
		if err != nil {
			return err
		}
		if !ed25519.Verify(key, text, h.Signature) {
			o.fail(h, Tampered, "the head itself has no valid signature: the file was changed, or was not signed")
			return nil
		}
	}
	found, ok, err := s.Evidence.Extends(ctx, h.ref(), seals.Head{Seals: h.Seals, Chain: h.Chain})
	if errors.Is(err, store.ErrNotFound) {
		o.fail(h, Missing,
			"the conversation was there when the head was published, and has vanished without a tombstone")
		return nil
	}
	if err != nil {
		return err
	}
	if !ok {
		o.fail(h, State(found.State), found.Detail)
		return nil
	}
	if !h.Deleted.IsZero() {
		return nil
	}
	c, err := s.Conversations.Get(ctx, h.ref())
	if err == nil && !c.ContentDeleted.IsZero() {
		o.Deleted++
	}
	return err
}

func (o *HeadsReport) fail(h Head, state State, detail string) {
	o.Failed++
	if len(o.Failures) < maxFailures {
		o.Failures = append(o.Failures, Failure{h.Tenant, h.Conversation, "", CheckHeads, state, detail})
	}
}
