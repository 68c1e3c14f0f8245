package audit

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/retention"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// PruneKind is a kind of content that may go by age.
type PruneKind string

// PruneToolResults is the content of old tool results in the messages; the other kinds are texts of runs.
const PruneToolResults PruneKind = "tool-results"

// pruneKinds are the kinds, and the artifacts that each stands for.
var pruneKinds = map[PruneKind][]contract.ArtifactKind{
	"answers":        {contract.ArtifactAnswer},
	"contexts":       {contract.ArtifactContext},
	"inputs":         {contract.ArtifactInput},
	"prompts":        {contract.ArtifactInput, contract.ArtifactRequest},
	"reports":        {contract.ArtifactVerification, contract.ArtifactOmitted, contract.ArtifactComparison},
	PruneToolResults: nil,
}

// PruneKinds lists the kinds by name.
func PruneKinds() []string {
	var names []string
	for kind := range pruneKinds {
		names = append(names, string(kind))
	}
	slices.Sort(names)
	return names
}

// Prune says what is to go.
type Prune struct {
	Sweep
	// Before is the age: what was written or used since stays.
	Before time.Time
	Kinds  []PruneKind
	// Apply takes it; without it nothing changes, and the result tells what would go.
	Apply bool
	// Progress is told after each conversation.
	Progress func(PruneTotals)
}

// PruneTotals is what went, or would go.
type PruneTotals struct {
	Total         int `json:"total"`
	Conversations int `json:"conversations"`
	Resumed       int `json:"resumed,omitempty"`
	// Applied says that it is gone; else it would go.
	Applied bool `json:"applied"`
	// Kinds sums by kind of artifact, and tool results.
	Kinds map[string]PruneSum `json:"kinds"`
	// Busy counts conversations that were in use and left alone.
	Busy int `json:"busy"`
}

// PruneSum is a number of texts and the bytes of their content.
type PruneSum struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

func (t *PruneTotals) begin(total, done int) { t.Total, t.Resumed = total, done }

func (t *PruneTotals) add(kind string, bytes int64) {
	if t.Kinds == nil {
		t.Kinds = map[string]PruneSum{}
	}
	sum := t.Kinds[kind]
	t.Kinds[kind] = PruneSum{sum.Count + 1, sum.Bytes + bytes}
}

// The size of one transaction: a conversation's row is held while it lasts.
const (
	pruneArtifacts = 100
	pruneMessages  = 50
)

// Run goes through the conversations and takes what the rule lets go, in small transactions: one that is in use is left
// alone. Interrupted, it goes on from there when it is called again.
func (p Prune) Run(ctx context.Context, s *store.Store) (PruneTotals, error) {
	rule := retention.Rule{Before: p.Before}
	for _, kind := range p.Kinds {
		artifacts, ok := pruneKinds[kind]
		if !ok {
			return PruneTotals{}, store.Invalidf("there is no kind %q: %s", kind,
				strings.Join(PruneKinds(), ", "))
		}
		rule.ArtifactKinds = append(rule.ArtifactKinds, artifacts...)
		rule.ToolResults = rule.ToolResults || kind == PruneToolResults
	}
	out := PruneTotals{Applied: p.Apply, Kinds: map[string]PruneSum{}}
	what := fmt.Sprintf("prune apply=%t kinds=%v", p.Apply, p.Kinds)
	err := p.each(ctx, s, what, &out, func(ref store.ConversationRef) error {
		err := p.conversation(ctx, s, ref, rule, &out)
		switch {
		case errors.Is(err, retention.ErrBusy):
			out.Busy++
		case errors.Is(err, store.ErrNotFound): // it went away meanwhile
		case err != nil:
			return err
		}
		out.Conversations++
		return nil
	}, func() {
		if p.Progress != nil {
			p.Progress(out)
		}
	})
	return out, err
}

func (p Prune) conversation(ctx context.Context, s *store.Store, ref store.ConversationRef, rule retention.Rule,
	out *PruneTotals,
) error {
	found, err := s.Retention.Prunable(ctx, ref, rule)
	if err != nil {
		return err
	}
	if found.Busy {
		return retention.ErrBusy
	}
	if !p.Apply {
		for _, a := range found.Artifacts {
			out.add(a.Kind, a.Size)
		}
		for _, m := range found.Messages {
			out.add(string(PruneToolResults), m.Bytes)
		}
		return nil
	}
	for batch := range slices.Chunk(found.Artifacts, pruneArtifacts) {
		hashes := make([]store.Hash, len(batch))
		for i, a := range batch {
			hashes[i] = a.SHA256
		}
		gone, err := s.Retention.PruneArtifacts(ctx, ref, rule, hashes)
		if err != nil {
			return err
		}
		for _, a := range gone.Artifacts {
			out.add(a.Kind, a.Size)
		}
	}
	return p.messages(ctx, s, ref, found, out)
}

// messages puts placeholders in the place of tool results.
func (p Prune) messages(ctx context.Context, s *store.Store, ref store.ConversationRef, found retention.Prunable,
	out *PruneTotals,
) error {
	if len(found.Messages) == 0 {
		return nil
	}
	c, err := s.Conversations.Get(ctx, ref)
	if err != nil {
		return err
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	if err != nil {
		return fmt.Errorf("conversation %s: %w", ref, err)
	}
	for batch := range slices.Chunk(found.Messages, pruneMessages) {
		seqs := make([]int64, len(batch))
		for i, m := range batch {
			seqs[i] = m.Seq
		}
		messages, err := s.Messages.At(ctx, ref, seqs)
		if err != nil {
			return err
		}
		var list []retention.Placeholder
		for _, m := range messages {
			if native, ok := placeholder(codec, m, time.Now().UTC()); ok {
				list = append(list, retention.Placeholder{Seq: m.Seq, Was: sha256.Sum256(m.Native), Native: native})
			}
		}
		gone, err := s.Retention.PruneMessages(ctx, ref, found.Epoch, list)
		if err != nil {
			return err
		}
		for _, m := range gone.Messages {
			out.add(string(PruneToolResults), m.Bytes)
		}
	}
	return nil
}

// placeholder is a message of the same shape whose tool results say that they were pruned; ok is false when that would
// not be smaller, or the message cannot be read.
func placeholder(codec transcript.Codec, m conversations.Message, now time.Time) (native []byte, ok bool) {
	decoded, err := codec.Decode(m.Native)
	if err != nil {
		return nil, false
	}
	text := fmt.Sprintf("[tool result pruned on %s: %d bytes, SHA-256 %x]", now.Format(time.DateOnly), len(m.Native),
		sha256.Sum256(m.Native))
	it := pipeline.ContextItem{Message: &decoded}
	for i, part := range decoded.Parts {
		if part.Kind == pipeline.PartToolResult {
			it.Edits = append(it.Edits, pipeline.Edit{Part: i, Content: -1, Op: pipeline.EditReplace, Text: text})
		}
	}
	if len(it.Edits) == 0 {
		return nil, false
	}
	out, err := transcript.EncodeItems(codec, []pipeline.ContextItem{it})
	if err != nil || len(out) != 1 || len(out[0]) >= len(m.Native) {
		return nil, false
	}
	return out[0], true
}
