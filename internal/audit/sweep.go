package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"precis/internal/store"
	"precis/internal/store/evidence"
	"precis/internal/store/seals"
)

// keepEvery is how often a sweep stores its progress, and so how much is repeated at most after a crash.
const keepEvery = 5 * time.Second

// maxFailures is the number of failures that a sweep lists.
const maxFailures = 1000

// Sweep selects the conversations to process.
type Sweep struct {
	evidence.Filter
	// Restart ignores the progress of an earlier, interrupted sweep.
	Restart bool
	// Progress, if set, is called after each conversation.
	Progress func(Swept)
}

// Swept is the result of verifying many conversations, also while that is running.
type Swept struct {
	// Total is the number of conversations. Conversations and Runs count those that are done, Resumed those that an
	// earlier, interrupted call did.
	Total         int `json:"total"`
	Conversations int `json:"conversations"`
	Runs          int `json:"runs"`
	Resumed       int `json:"resumed,omitempty"`
	// Checked counts messages, events, records and artifacts.
	Checked int `json:"checked"`
	// Pruned counts pruned content, Failed the conversations that do not verify.
	Pruned int `json:"pruned"`
	Failed int `json:"failed"`
	// Deleted counts the conversations whose content was deleted, and of which a sealed tombstone is left.
	Deleted int `json:"deleted"`
	// Failures are the first failures.
	Failures []Failure `json:"failures,omitempty"`
	// DeletedConversations are the first of those whose content was deleted.
	DeletedConversations []Deleted `json:"deleted_conversations,omitempty"`
	// NotCovered is what the result says nothing about.
	NotCovered []seals.Uncovered `json:"not_covered,omitempty"`
}

// Deleted is a conversation whose content was deleted: its tombstone.
type Deleted struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	// At is the time of the deletion, Messages the number of messages that the conversation had, and Chain the hash of
	// its seals.
	At       time.Time  `json:"at"`
	Messages int64      `json:"messages"`
	Chain    store.Hash `json:"chain"`
}

// Failure is one check that failed.
type Failure struct {
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
	// Run is "" for a check of the conversation.
	Run    string `json:"run,omitempty"`
	Check  string `json:"check"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
}

func (s Sweep) job(what string) string {
	return fmt.Sprintf("%s tenant=%q conversation=%q", what, s.Tenant, s.Conversation)
}

// VerifyAll verifies every conversation that the sweep selects, one at a time, so that memory does not grow with the
// store. After an interruption, the next call continues from there.
func VerifyAll(ctx context.Context, s *store.Store, w Sweep) (Swept, error) {
	var out Swept
	err := w.each(ctx, s, "verify", &out, func(ref store.ConversationRef) error {
		r, err := VerifyConversation(ctx, s, ref)
		if errors.Is(err, store.ErrNotFound) {
			return nil // the conversation was deleted in the meantime
		}
		if err != nil {
			return err
		}
		out.add(r)
		return nil
	}, func() { w.tell(out) })
	out.NotCovered = seals.NotCovered()
	return out, err
}

func (w Sweep) tell(out Swept) {
	if w.Progress != nil {
		w.Progress(out)
	}
}

func (o *Swept) begin(total, done int) { o.Total, o.Resumed = total, done }

func (o *Swept) add(r ConversationReport) {
	o.Conversations++
	if r.Deleted != nil {
		o.Deleted++
		if len(o.DeletedConversations) < maxFailures {
			o.DeletedConversations = append(o.DeletedConversations, *r.Deleted)
		}
	}
	failed := false
	note := func(run string, checks []Check) {
		for _, c := range checks {
			o.Checked += c.Checked
			o.Pruned += c.Findings.Pruned
			if !c.State.Failed() {
				continue
			}
			failed = true
			if len(o.Failures) < maxFailures {
				o.Failures = append(o.Failures,
					Failure{r.Conversation.Tenant, r.Conversation.ID, run, c.Name, c.State, c.Detail})
			}
		}
	}
	note("", r.Checks)
	for _, run := range r.Runs {
		o.Runs++
		note(run.Run, run.Checks)
	}
	if failed {
		o.Failed++
	}
}

// progress is what a sweep stores between two calls: its totals as JSON.
type progress interface{ begin(total, done int) }

// each calls do for every conversation that the sweep selects, ordered by creation, and stores its progress. totals is
// read at the beginning and stored along the way.
func (w Sweep) each(ctx context.Context, s *store.Store, what string, totals progress,
	do func(store.ConversationRef) error, after func(),
) error {
	name := w.job(what)
	job := evidence.Job{Name: name}
	done := 0
	if w.Restart {
		if err := s.Jobs.End(ctx, name); err != nil {
			return err
		}
	} else if found, err := s.Jobs.Get(ctx, name); err == nil {
		if err := json.Unmarshal(found.Progress, totals); err != nil {
			return fmt.Errorf("read how far the last call came: %w", err)
		}
		job = found
		var n struct {
			Conversations int `json:"conversations"`
		}
		if err := json.Unmarshal(found.Progress, &n); err != nil {
			return fmt.Errorf("read how far the last call came: %w", err)
		}
		done = n.Conversations
	} else if !errors.Is(err, store.ErrNotFound) {
		return err
	}
	total, err := s.Evidence.Count(ctx, w.Filter)
	if err != nil {
		return err
	}
	totals.begin(total, done)
	keep := func(ctx context.Context) error {
		var err error
		if job.Progress, err = json.Marshal(totals); err != nil {
			return fmt.Errorf("encode how far it has come: %w", err)
		}
		return s.Jobs.Keep(ctx, job)
	}
	kept := time.Now()
	for {
		page, err := s.Evidence.After(ctx, w.Filter, job.Key, 0)
		if err == nil && len(page) == 0 {
			return s.Jobs.End(ctx, name)
		}
		for i := 0; err == nil && i < len(page); i++ {
			if err = do(page[i].Ref); err != nil {
				break
			}
			job.Key = page[i].Key
			after()
			if time.Since(kept) > keepEvery {
				err, kept = keep(ctx), time.Now()
			}
		}
		if err != nil { // the caller may have been interrupted: the next call continues here
			late, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepEvery)
			defer cancel()
			return errors.Join(err, keep(late))
		}
	}
}
