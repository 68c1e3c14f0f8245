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

// State is how a check ended.
type State string

// The states, from the best to the worst.
const (
	OK State = "ok"
	// Pruned: what is there is as it was written, and some of it was pruned by age or removed with its conversation.
	Pruned State = "pruned"
	// Differs: everything is as it was written, and this build makes something else of it.
	Differs State = "differs"
	// Missing: something that was written is gone.
	Missing State = "missing"
	// Tampered: something is not what was written.
	Tampered State = "tampered"
)

// Failed says whether a state is a reason to worry.
func (s State) Failed() bool { return s != OK && s != Pruned }

// The checks, in order.
const (
	// CheckMessages: the messages are unchanged and complete, up to the head.
	CheckMessages = "messages"
	// CheckTimeline: the events are unchanged and complete.
	CheckTimeline = "timeline"
	// CheckRecords: the run, its steps, its model calls, its marker, the state and the configuration are what was
	// sealed.
	CheckRecords = "records"
	// CheckCovered: the run and its marker commit to exactly the messages that are there.
	CheckCovered = "covered"
	// CheckArtifacts: every prompt, answer, summary and context that the run refers to is what its hash says.
	CheckArtifacts = "artifacts"
	// CheckSummary: the marker's summary is the one that the run's last summary step wrote.
	CheckSummary = "summary"
	// CheckContext: the context that was recorded follows from messages, marker, state and settings.
	CheckContext = "context"
)

// Check is one thing that was looked at.
type Check struct {
	Name  string
	State State
	// Detail is one sentence for a person.
	Detail string
	evidence.Findings
}

// Report is what became of the verification of one run.
type Report struct {
	Run string
	// Conversation is the client's id.
	Conversation string
	Outcome      precis.Outcome
	// OK says that nothing is tampered with or missing; Pruned that some of it was pruned.
	OK     bool
	Pruned bool
	Checks []Check
	// Seals is the head of the conversation's seals. Whoever keeps it elsewhere can tell later that none was rewritten.
	Seals seals.Head
}

func (r *Report) judge() {
	r.OK, r.Pruned = true, false
	for _, c := range r.Checks {
		r.OK = r.OK && !c.State.Failed()
		r.Pruned = r.Pruned || c.State == Pruned
	}
}

// VerifyRun proves a run, as far as its record goes. ErrNotFound when there is none.
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

// ConversationReport is what became of the verification of a conversation.
type ConversationReport struct {
	Conversation store.ConversationRef
	// Checks are those of the conversation, Runs those of its runs beside them.
	Checks []Check
	Runs   []Report
	Seals  seals.Head
}

// VerifyConversation proves a conversation with all its runs.
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

// verify looks at a conversation and at the given runs of it; only compares no rows of other runs.
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

// ofRun makes the checks of a run that need nothing built again.
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

// covered compares what the run and its marker commit to with the chain over the messages.
func covered(v *evidence.Verification, run storeruns.Run, m *markers.Marker, chains map[int64]store.Hash) Check {
	var f evidence.Findings
	look := func(table, key string, to int64, chain store.Hash) {
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
		look("runs", run.Ref.ID, run.Facts.CoversTo, run.Facts.CoveredChain)
	}
	if m != nil && m.CoversTo > 0 {
		look("markers", m.ID, m.CoversTo, m.CoveredChain)
	}
	if f.Checked == 0 {
		return Check{Name: CheckCovered, State: OK, Detail: "the run covers no messages"}
	}
	return conclude(CheckCovered, f, "messages %d to %d and all before them, by %s", run.Facts.CoversFrom,
		run.Facts.CoversTo, short(run.Facts.CoveredChain.String()))
}

// conclude makes a check of what was found. fine is what to say when nothing was.
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
		worst = evidence.Tampered // it is behind those that are listed
	}
	switch worst {
	case evidence.Missing:
		c.State = Missing
	case evidence.Tampered:
		c.State = Tampered
	default:
		c.State = Pruned
	}
	for _, fault := range f.List { // the first of the worst
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

// sentence names the place of a fault.
func sentence(f evidence.Finding) string {
	place := f.Table + " " + f.Key
	if f.Column != "" {
		place += ", " + f.Column
	}
	return place + ": " + f.Detail
}

// short is enough of a hash to be told from others.
func short(sha string) string {
	if len(sha) > 12 {
		return sha[:12] + "…"
	}
	return sha
}

// rebuilds makes the checks that build something again.
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

// lost is the state of a check that needs what cannot be read: pruned, missing or damaged.
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

// writtenBy is the version of the code that wrote a run.
func writtenBy(run storeruns.Run) string {
	var v struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(run.Versions, &v) != nil || v.Code == "" {
		return "an unknown version"
	}
	return "version " + v.Code
}
