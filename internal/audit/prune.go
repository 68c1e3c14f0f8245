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

// PruneKind is a kind of content that can be pruned by age.
type PruneKind string

// PruneToolResults is the content of tool results in messages. The other kinds are texts of runs.
const PruneToolResults PruneKind = "tool-results"

// pruneKinds has the kinds with the artifacts that each includes.
var pruneKinds = map[PruneKind][]contract.ArtifactKind{
	"answers":        {contract.ArtifactAnswer},
	"contexts":       {contract.ArtifactContext},
	"inputs":         {contract.ArtifactInput},
	"prompts":        {contract.ArtifactInput, contract.ArtifactRequest},
	"reports":        {contract.ArtifactVerification, contract.ArtifactOmitted, contract.ArtifactComparison},
	PruneToolResults: nil,
}

// PruneKinds returns the names of all kinds, sorted.
func PruneKinds() []string {
	var names []string
	for kind := range pruneKinds {
		names = append(names, string(kind))
	}
	slices.Sort(names)
	return names
}

// Prune says which content to remove.
type Prune struct {
	Sweep
	// Before bounds the age: content that was written or used since is kept.
	Before time.Time
	Kinds  []PruneKind
	// Apply removes the content. Without it, nothing changes, and the result has what would be removed.
	Apply bool
	// Progress, if set, is called after each conversation.
	Progress func(PruneTotals)
}

// PruneTotals sums the content that was removed, or would be.
type PruneTotals struct {
	Total         int `json:"total"`
	Conversations int `json:"conversations"`
	Resumed       int `json:"resumed,omitempty"`
	// Applied is true if the content was removed.
	Applied bool `json:"applied"`
	// Kinds has the sums by kind of artifact, and for tool results.
	Kinds map[string]PruneSum `json:"kinds"`
	// Busy counts the conversations that were skipped because they were in use.
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

// The sizes of one transaction, which locks the conversation's row.
const (
	pruneArtifacts = 100
	pruneMessages  = 50
)

// Run prunes the conversations in small transactions and skips those in use. After an interruption, the next call
// continues from there.
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
		case errors.Is(err, store.ErrNotFound): // the conversation was deleted in the meantime
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
		pruned, err := s.Retention.PruneArtifacts(ctx, ref, rule, hashes)
		if err != nil {
			return err
		}
		for _, a := range pruned.Artifacts {
			out.add(a.Kind, a.Size)
		}
	}
	return p.messages(ctx, s, ref, found, out)
}

// messages replaces tool results by placeholders.
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
		pruned, err := s.Retention.PruneMessages(ctx, ref, found.Epoch, list)
		if err != nil {
			return err
		}
		for _, m := range pruned.Messages {
			out.add(string(PruneToolResults), m.Bytes)
		}
	}
	return nil
}

// placeholder returns a message of the same shape with a note in place of each tool result. ok is false if that would
// not be smaller, or if the message cannot be parsed.
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
