package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"precis"
	"precis/internal/store"
	"precis/internal/store/evidence"
	"precis/internal/store/markers"
	storeruns "precis/internal/store/runs"
	"precis/internal/store/seals"
)

// State is the result of a check.
type State string

// The states, from the best to the worst.
const (
	OK State = "ok"
	// Pruned: the records are unchanged, and some content was pruned by age or deleted with its conversation.
	Pruned State = "pruned"
	// Differs: the records are unchanged, and this build produces a different result from them.
	Differs State = "differs"
	// Missing: a record is missing.
	Missing State = "missing"
	// Tampered: a record was changed.
	Tampered State = "tampered"
)

// Failed reports whether a check with this state failed.
func (s State) Failed() bool { return s != OK && s != Pruned }

// The checks, in order.
const (
	// CheckMessages: the messages are unchanged and complete, up to the head.
	CheckMessages = "messages"
	// CheckTimeline: the events are unchanged and complete.
	CheckTimeline = "timeline"
	// CheckRecords: the run, its attempts, model calls and marker, the live state and the configuration are as sealed.
	CheckRecords = "records"
	// CheckCovered: the hashes of the covered messages in the run and its marker match the stored messages.
	CheckCovered = "covered"
	// CheckArtifacts: every prompt, answer, summary and context that the run refers to matches its hash.
	CheckArtifacts = "artifacts"
	// CheckSummary: the marker's summary is the one that the run's last summarize stage wrote.
	CheckSummary = "summary"
	// CheckContext: the recorded context can be rebuilt from messages, marker, live state and settings.
	CheckContext = "context"
)

// Check is one check of a report.
type Check struct {
	Name  string
	State State
	// Detail describes the result in one sentence.
	Detail string
	evidence.Findings
}

// Report is the result of verifying a run.
type Report struct {
	Run string
	// Conversation is the client's id.
	Conversation string
	Outcome      precis.Outcome
	// OK is true if no check failed, Pruned if some content was pruned.
	OK     bool
	Pruned bool
	Checks []Check
	// Seals is the head of the conversation's seals. A copy stored elsewhere shows later whether seals were rewritten.
	Seals seals.Head
}

func (r *Report) judge() {
	r.OK, r.Pruned = true, false
	for _, c := range r.Checks {
		r.OK = r.OK && !c.State.Failed()
		r.Pruned = r.Pruned || c.State == Pruned
	}
}

// VerifyRun verifies the records of a run. The error is store.ErrNotFound if there is no such run.
func VerifyRun(ctx context.Context, s *store.Store, ref store.RunRef) (Report, error) {
	found, err := s.Runs.Get(ctx, ref)
	if err != nil {
		return Report{}, err
	}
	var whole ConversationReport
	err = s.Evidence.Verify(ctx, store.ConversationRef{Tenant: ref.Tenant, ID: found.Conversation},
		func(ctx context.Context, v *evidence.Verification) error {
			whole, err = verify(ctx, v, []string{ref.ID}, true)
			return err
		})
	if err != nil {
		return Report{}, err
	}
	r := whole.Runs[0]
	r.Checks = append(append([]Check{}, whole.Checks...), r.Checks...)
	r.Seals = whole.Seals
	if err := rebuilds(ctx, s, ref.Tenant, &r); err != nil {
		return Report{}, err
	}
	r.judge()
	return r, nil
}

// ConversationReport is the result of verifying a conversation.
type ConversationReport struct {
	Conversation store.ConversationRef
	// Checks are the checks of the conversation, Runs the reports of its runs.
	Checks []Check
	Runs   []Report
	Seals  seals.Head
	// Deleted is the tombstone of a conversation whose content was deleted, nil for another one.
	Deleted *Deleted
}

// VerifyConversation verifies a conversation with all its runs.
func VerifyConversation(ctx context.Context, s *store.Store, ref store.ConversationRef) (ConversationReport, error) {
	var whole ConversationReport
	err := s.Evidence.Verify(ctx, ref, func(ctx context.Context, v *evidence.Verification) error {
		runs, err := v.Runs(ctx)
		if err != nil {
			return err
		}
		whole, err = verify(ctx, v, runs, false)
		return err
	})
	if err != nil {
		return whole, err
	}
	for i := range whole.Runs {
		if err := rebuilds(ctx, s, ref.Tenant, &whole.Runs[i]); err != nil {
			return whole, err
		}
		whole.Runs[i].judge()
	}
	return whole, nil
}

// verify checks a conversation and the given runs. With only, it does not compare the rows of other runs.
func verify(ctx context.Context, v *evidence.Verification, runs []string, only bool) (ConversationReport, error) {
	out := ConversationReport{Conversation: v.Conversation.Ref}
	var wanted []int64
	loaded := make([]storeruns.Run, len(runs))
	markers := make([]*markers.Marker, len(runs))
	for i, id := range runs {
		run, err := v.Run(ctx, id)
		if err != nil {
			return out, err
		}
		loaded[i] = run
		wanted = append(wanted, run.Facts.CoversTo)
		if run.Marker != "" {
			m, err := v.Marker(ctx, run.Marker)
			if err != nil {
				return out, err
			}
			markers[i] = &m
			wanted = append(wanted, m.CoversTo)
		}
	}
	messages, chains, err := v.Messages(ctx, wanted...)
	if err != nil {
		return out, err
	}
	c := v.Conversation
	out.Checks = append(out.Checks, conclude(CheckMessages, messages,
		"%d messages, none changed and none missing, up to the head %s", messages.Checked, short(c.HeadChain.String())))
	events, err := v.Events(ctx)
	if err != nil {
		return out, err
	}
	out.Checks = append(out.Checks,
		conclude(CheckTimeline, events, "%d events, none changed and none missing", events.Checked))
	filter := runs
	if !only {
		filter = nil
	}
	records, head, err := v.Seals(ctx, filter...)
	if err != nil {
		return out, err
	}
	out.Seals = head
	if !c.ContentDeleted.IsZero() {
		out.Deleted = &Deleted{c.Ref.Tenant, c.Ref.ID, c.ContentDeleted.UTC(), c.HeadSeq, head.Chain}
	}
	out.Checks = append(out.Checks, conclude(CheckRecords, records,
		"the rows are what %d seals recorded, up to %s", head.Seals, short(head.Chain.String())))
	for i, run := range loaded {
		r, err := ofRun(ctx, v, run, markers[i], chains)
		if err != nil {
			return out, err
		}
		out.Runs = append(out.Runs, r)
	}
	return out, nil
}

// ofRun returns the checks of a run that do not rebuild anything.
func ofRun(ctx context.Context, v *evidence.Verification, run storeruns.Run, m *markers.Marker,
	chains map[int64]store.Hash,
) (Report, error) {
	r := Report{Run: run.Ref.ID, Conversation: run.Conversation, Outcome: run.Outcome}
	r.Checks = append(r.Checks, covered(v, run, m, chains))
	refs, err := v.References(ctx, run.Ref.ID)
	if err != nil {
		return r, err
	}
	var f evidence.Findings
	seen := map[string]bool{}
	for _, ref := range refs {
		if seen[ref.SHA256] {
			continue
		}
		seen[ref.SHA256] = true
		if _, err := v.Artifact(ctx, &f, ref); err != nil {
			return r, err
		}
	}
	r.Checks = append(r.Checks, conclude(CheckArtifacts, f,
		"%d prompts, answers and other texts are what their hashes say", f.Checked))
	return r, nil
}

// covered compares the hashes of the covered messages in the run and its marker to the stored messages.
func covered(v *evidence.Verification, run storeruns.Run, m *markers.Marker, chains map[int64]store.Hash) Check {
	var f evidence.Findings
	compare := func(table, key string, to int64, chain store.Hash) {
		f.Checked++
		switch known, ok := chains[to]; {
		case !v.Conversation.ContentDeleted.IsZero():
			f.Add(evidence.Finding{
				State: evidence.Pruned, Table: "messages", Key: v.Conversation.Ref.ID,
				Detail: "what was covered went with the conversation's content",
			})
		case !ok:
			f.Add(evidence.Finding{
				State: evidence.Tampered, Table: table, Key: key, Column: "covers_to",
				Detail: fmt.Sprintf("it covers up to message %d, and there is no such message", to),
			})
		case known != chain:
			f.Add(evidence.Finding{
				State: evidence.Tampered, Table: table, Key: key, Column: "covered_chain",
				Detail: fmt.Sprintf("it commits to other messages than the %d that are there", to),
			})
		}
	}
	if run.Facts.CoversTo > 0 {
		compare("runs", run.Ref.ID, run.Facts.CoversTo, run.Facts.CoveredChain)
	}
	if m != nil && m.CoversTo > 0 {
		compare("markers", m.ID, m.CoversTo, m.CoveredChain)
	}
	if f.Checked == 0 {
		return Check{Name: CheckCovered, State: OK, Detail: "the run covers no messages"}
	}
	return conclude(CheckCovered, f, "messages %d to %d and all before them, by %s", run.Facts.CoversFrom,
		run.Facts.CoversTo, short(run.Facts.CoveredChain.String()))
}

// conclude returns a check with the findings. fine is its detail if there are none.
func conclude(name string, f evidence.Findings, fine string, args ...any) Check {
	c := Check{Name: name, State: OK, Detail: fmt.Sprintf(fine, args...), Findings: f}
	if f.Bad == 0 && f.Pruned == 0 {
		return c
	}
	worst := evidence.Pruned
	for _, fault := range f.List {
		if fault.State == evidence.Tampered || fault.State == evidence.Missing && worst == evidence.Pruned {
			worst = fault.State
		}
	}
	if f.Bad > 0 && worst == evidence.Pruned {
		worst = evidence.Tampered // it is not among the findings that are listed
	}
	switch worst {
	case evidence.Missing:
		c.State = Missing
	case evidence.Tampered:
		c.State = Tampered
	default:
		c.State = Pruned
	}
	for _, fault := range f.List { // the first one with the worst state
		if fault.State == worst {
			c.Detail = sentence(fault)
			break
		}
	}
	if more := f.Bad - 1; c.State != Pruned && more > 0 {
		c.Detail += fmt.Sprintf(" (and %d more)", more)
	} else if more := f.Pruned - 1; c.State == Pruned && more > 0 {
		c.Detail += fmt.Sprintf(" (and %d more)", more)
	}
	return c
}

// sentence returns a finding as text.
func sentence(f evidence.Finding) string {
	place := f.Table + " " + f.Key
	if f.Column != "" {
		place += ", " + f.Column
	}
	return place + ": " + f.Detail
}

// short returns the beginning of a hash.
func short(sha string) string {
	if len(sha) > 12 {
		return sha[:12] + "…"
	}
	return sha
}

// rebuilds returns the checks that rebuild the summary and the context.
func rebuilds(ctx context.Context, s *store.Store, tenant string, r *Report) error {
	run, err := s.Runs.Get(ctx, store.RunRef{Tenant: tenant, ID: r.Run})
	if err != nil {
		return err
	}
	summary, rebuilt, err := rebuild(ctx, s, run)
	if err != nil {
		return err
	}
	r.Checks = append(r.Checks, summary, rebuilt)
	return nil
}

// lost returns a check that failed because a record that it needs is pruned, missing or damaged. It returns other
// errors.
func lost(name string, err error) (Check, error) {
	switch {
	case errors.Is(err, store.ErrPruned), errors.Is(err, store.ErrContentDeleted):
		return Check{Name: name, State: Pruned, Detail: "it cannot be built again: a part of it was pruned"}, nil
	case errors.Is(err, store.ErrNotFound):
		return Check{Name: name, State: Missing, Detail: "it cannot be built again: " + err.Error()}, nil
	case errors.Is(err, store.ErrDamaged):
		return Check{Name: name, State: Tampered, Detail: "it cannot be built again: " + err.Error()}, nil
	}
	return Check{}, err
}

// writtenBy returns the version of the code that executed a run.
func writtenBy(run storeruns.Run) string {
	var v struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(run.Versions, &v) != nil || v.Code == "" {
		return "an unknown version"
	}
	return "version " + v.Code
}
