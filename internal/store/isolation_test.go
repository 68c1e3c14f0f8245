package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/contract"
	"precis/internal/memory/search"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/evidence"
	"precis/internal/store/markers"
	"precis/internal/store/modelcalls"
	"precis/internal/store/replays"
	"precis/internal/store/retention"
	"precis/internal/store/runs"
	"precis/internal/store/segments"
	"precis/internal/store/timeline"
	"precis/internal/store/triggers"
	"precis/pipeline"
)

// Whatever a tenant asks of what is another's, it does not exist. The table has every method that could be asked:
// one that is added without a line here fails the test.
func TestTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.Tenants.Ensure(t.Context(), "mallory", ""); err != nil {
		t.Fatal(err)
	}
	ref := newConversation(t, s, "c")
	talk(t, s, ref, 5)
	m := compact(t, s, ref, 4, "SUM")
	r := request(t, s, ref)
	before := contextOf(t, s, ref)
	p, err := s.Replies.Open(t.Context(), ref, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.LiveState.Set(t.Context(), ref, "plan", []byte("p")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Segments.PutNote(t.Context(), ref,
		segments.NewNote{Name: "plan.md", Text: []byte("SUM")}); err != nil {
		t.Fatal(err)
	}
	query, err := search.Parse("SUM")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attempts.PutResult(t.Context(), r.Ref, "slim", 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	call := modelcalls.Call{Call: 1, Attempt: 1, Vendor: "v", Model: "m"}
	if _, err := s.ModelCalls.Finish(t.Context(), r.Ref, call, modelcalls.Result{Answer: []byte("a")}); err != nil {
		t.Fatal(err)
	}

	batch, err := s.Batches.Create(t.Context(), store.DefaultTenant, nil, 1)
	if err != nil {
		t.Fatal(err)
	}

	conv := store.ConversationRef{Tenant: "mallory", ID: "c"}
	run := store.RunRef{Tenant: "mallory", ID: r.Ref.ID}
	ctx := t.Context()
	one := []conversations.NewMessage{message(pipeline.RoleUser, "x")}
	refused := map[string]func() error{
		"Append": func() error {
			_,
				err := s.Changes.Append(ctx, conv, one, changes.AppendOptions{})
			return err
		},
		"AppendEvent": func() error {
			_,
				err := s.Timeline.Append(ctx, conv, timeline.Event{Kind: "warning"})
			return err
		},
		"AppendStream": func() error { _, err := s.Changes.AppendStream(ctx, conv, nil); return err },
		"ApplyMarker": func() error {
			_,
				err := s.Markers.Apply(ctx, run, markers.NewMarker{}, runs.Facts{})
			return err
		},
		"ApplyPrepared": func() error {
			_, _, err := s.Markers.ApplyPrepared(ctx, conv, m.ID, markers.Application{})
			return err
		},
		"Answer":     func() error { _, err := s.ModelCalls.Answer(ctx, run, 1); return err },
		"BeginReply": func() error { _, _, err := s.Contexts.BeginReply(ctx, conv, time.Hour); return err },
		"BeginCall":  func() error { _, err := s.ModelCalls.Begin(ctx, run, call); return err },
		"ChangeConversation": func() error {
			_, _, err := s.Changes.Change(ctx, conv,
				func(conversations.Conversation) (conversations.Patch, error) { return conversations.Patch{}, nil },
				nil)
			return err
		},
		"CheckChain":                func() error { _, err := s.Evidence.CheckChain(ctx, conv, 0); return err },
		"CloseReply":                func() error { _, err := s.Replies.Close(ctx, conv, p.ID); return err },
		"DeleteConversationContent": func() error { return s.Retention.DeleteContent(ctx, conv) },
		"DiscardPreparedOf":         func() error { return s.Markers.DiscardPreparedOf(ctx, conv, r.Ref.ID, "x") },
		"DiscardPrepared":           func() error { return s.Markers.DiscardPrepared(ctx, conv, "x") },
		"EndReply": func() error {
			_, _,
				err := s.Changes.EndReply(ctx, conv, p.ID, changes.ReplyEnd{})
			return err
		},
		"Enrichments": func() error { _, err := s.LiveState.List(ctx, conv); return err },
		"Events":      func() error { _, err := s.Timeline.After(ctx, conv, 0, 0); return err },
		"FinishCall": func() error {
			_,
				err := s.ModelCalls.Finish(ctx, run, call, modelcalls.Result{})
			return err
		},
		"FinishRun": func() error {
			_, err := s.Runs.Finish(ctx, run, runs.End{Outcome: precis.OutcomeFailed})
			return err
		},
		"GetArtifact":     func() error { _, err := s.Artifacts.Get(ctx, "mallory", m.Summary); return err },
		"GetConversation": func() error { _, err := s.Conversations.Get(ctx, conv); return err },
		"GetEnrichment":   func() error { _, err := s.LiveState.Get(ctx, conv, "plan"); return err },
		"GetMarker":       func() error { _, err := s.Markers.Get(ctx, conv, m.ID); return err },
		"GetRun":          func() error { _, err := s.Runs.Get(ctx, run); return err },
		"GetSegment":      func() error { _, err := s.Segments.Get(ctx, conv, "plan.md"); return err },
		"GetSyncState":    func() error { _, err := s.Messages.SyncState(ctx, conv); return err },
		"KeepSyncChain":   func() error { return s.Messages.KeepSyncChain(ctx, conv, 10, store.Hash{1}) },
		"Look": func() error {
			return s.Triggers.Inspect(ctx, conv,
				func(context.Context, triggers.State) error { return nil })
		},
		"Ledger": func() error { _, err := s.ModelCalls.List(ctx, run); return err },
		"GetReplayBatch": func() error {
			_, err := s.Batches.Get(ctx, store.BatchRef{Tenant: "mallory", ID: batch.Ref.ID})
			return err
		},
		"FinishReplayBatch": func() error {
			_, err := s.Batches.Finish(ctx, store.BatchRef{Tenant: "mallory", ID: batch.Ref.ID}, false)
			return err
		},
		"ReplayBatchTotals": func() error {
			_, err := s.Batches.Totals(ctx, store.BatchRef{Tenant: "mallory", ID: batch.Ref.ID})
			return err
		},
		"GetState":       func() error { _, err := s.Contexts.Snapshot(ctx, "mallory", m.Summary); return err },
		"KeepComparison": func() error { return s.Replays.KeepComparison(ctx, run, []byte("{}"), nil) },
		"KeepState": func() error {
			_, err := s.Contexts.KeepSnapshot(ctx, run,
				contexts.Source{Conversation: conversations.Conversation{Ref: conv}}, nil)
			return err
		},
		"LiveViewAt": func() error {
			_,
				err := s.Contexts.At(ctx, conv, contexts.Snapshot{}, contexts.Options{})
			return err
		},
		"LiveSums": func() error { _, err := s.Contexts.Sizes(ctx, conv); return err },
		"LiveView": func() error { _, err := s.Contexts.Read(ctx, conv, contexts.Options{}); return err },
		"MarkRunDispatched": func() error {
			return s.Outbox.MarkRunDispatched(ctx, run)
		},
		"Markers": func() error { _, err := s.Markers.List(ctx, conv); return err },
		"Messages": func() (err error) {
			for _, err = range s.Messages.Walk(ctx, conv, 1, 0) {
				return err
			}
			return nil
		},
		"MessagesAt":  func() error { _, err := s.Messages.At(ctx, conv, []int64{1}); return err },
		"NoteNext":    func() error { return s.Attempts.NoteNext(ctx, run, "slim", 1, "x", "") },
		"OpenReply":   func() error { _, err := s.Replies.Open(ctx, conv, time.Hour); return err },
		"PutArtifact": func() error { _, err := s.Artifacts.Put(ctx, conv, "x", []byte("x")); return err },
		"PrepareMarker": func() error {
			_, err := s.Markers.Prepare(ctx, run, markers.NewMarker{}, runs.Facts{})
			return err
		},
		"PutNote": func() error {
			_, _,
				err := s.Segments.PutNote(ctx, conv, segments.NewNote{Name: "x"})
			return err
		},
		"KeepSegments":   func() error { return s.Segments.Keep(ctx, conv, nil) },
		"MeasureSegment": func() error { return s.Segments.Measure(ctx, conv, "plan.md", 1) },
		"AddSearchTexts": func() error { return s.SearchIndex.Add(ctx, conv, nil, 1) },
		"SearchIndex":    func() error { _, _, err := s.SearchIndex.Progress(ctx, conv); return err },
		"Search":         func() error { _, err := s.SearchIndex.Search(ctx, conv, query, nil, 1); return err },
		"SearchInside":   func() error { _, err := s.SearchIndex.SearchInside(ctx, conv, query, nil, 1); return err },
		"PutStageResult": func() error { _, err := s.Attempts.PutResult(ctx, run, "slim", 2, []byte("y")); return err },
		"RecordFacts":    func() error { return s.Runs.RecordFacts(ctx, run, runs.Facts{Summarizer: "x"}) },
		"RecordStep": func() error {
			return s.Attempts.Record(ctx, run,
				runs.Attempt{Stage: "slim", Call: 1, Attempt: 1, Outcome: contract.AttemptOK})
		},
		"RecordUsage": func() error {
			_,
				err := s.Changes.RecordUsage(ctx, conv, changes.UsageReport{Tokens: 1})
			return err
		},
		"ReportMarker": func() error {
			_, err := s.Markers.Report(ctx, conv, markers.Reported{Origin: markers.OriginAgent, CoversTo: 6})
			return err
		},
		"RequestRun": func() error {
			_, _,
				err := s.Runs.Request(ctx, conv, runs.Request{Kind: "manual"})
			return err
		},
		"Segments": func() error { _, err := s.Segments.List(ctx, conv); return err },
		"SetEnrichment": func() error {
			_, err := s.LiveState.Set(ctx, conv, "plan", []byte("x"))
			return err
		},
		"SetRenderedEnrichment": func() error {
			_, err := s.LiveState.SetRendered(ctx, conv, "plan", []byte("x"), nil)
			return err
		},
		"SyncChains":  func() error { _, err := s.Messages.SyncChains(ctx, conv, []int64{1}); return err },
		"Watch":       func() error { _, _, err := s.Triggers.Check(ctx, conv, nil); return err },
		"StageResult": func() error { _, err := s.Attempts.Result(ctx, run, "slim", 1); return err },
		"StartRun":    func() error { _, err := s.Runs.Start(ctx, run, "t"); return err },
		"Undo":        func() error { _, err := s.Markers.Undo(ctx, conv, ""); return err },
		"UpdateConversation": func() error {
			_,
				err := s.Changes.Update(ctx, conv, conversations.Patch{})
			return err
		},
		"Prunable": func() error { _, err := s.Retention.Prunable(ctx, conv, retention.Rule{}); return err },
		"PruneArtifacts": func() error {
			_,
				err := s.Retention.PruneArtifacts(ctx, conv, retention.Rule{}, nil)
			return err
		},
		"PruneMessages": func() error { _, err := s.Retention.PruneMessages(ctx, conv, 1, nil); return err },
		"ImportedFrom":  func() error { _, _, err := s.Exports.Origin(ctx, conv); return err },
		"Export":        func() error { return s.Exports.Export(ctx, conv, nil, nil) },
		"Verify": func() error {
			return s.Evidence.Verify(ctx, conv, func(context.Context, *evidence.Verification) error { return nil })
		},
	}
	// These take a tenant and find nothing of another's, or take none since they are the process's own.
	other := map[string]func() error{
		"APIKeys":            func() error { _, err := s.Keys.List(ctx, "mallory"); return err },
		"CreateConversation": nil, // below
		"ListConversations": func() error {
			list, _, err := s.Conversations.List(ctx, "nobody", "", 0)
			return none(len(list), err)
		},
		"CountRuns": func() error {
			list, err := s.Runs.Count(ctx, "mallory", runs.Filter{})
			return none(len(list), err)
		},
		"ListRuns": func() error {
			list, _, err := s.Runs.List(ctx, "mallory", runs.Filter{})
			return none(len(list), err)
		},
		"FindRun": nil, // TestFindRun
		"SummariseRuns": func() error {
			list, err := s.Runs.Summarize(ctx, "mallory", runs.Filter{})
			return none(len(list), err)
		},
		"CreateReplayBatch": func() error {
			if _, err := s.Batches.Create(ctx, "nobody", nil, 0); !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("a batch of nobody's: error %w", err)
			}
			return nil
		},
		"Replayables": func() error {
			list, _, err := s.Replays.List(ctx, "mallory", replays.Filter{}, "", 0)
			return none(len(list), err)
		},
		"CountReplayables": func() error {
			n, err := s.Replays.Count(ctx, "mallory", replays.Filter{})
			return none(n, err)
		},
		"TokensUsed": func() error {
			n, err := s.ModelCalls.TokensUsed(ctx, "mallory", time.Time{})
			return none(int(n), err)
		},
		"ChangeTenantSettings": nil, "TenantSettings": nil, // TestTenantSettings
		"UsageBy": func() error {
			list, err := s.ModelCalls.UsageBy(ctx, "mallory", "model", time.Time{})
			return none(len(list), err)
		},
		// TestTenantsAndKeys
		"RevokeAPIKey": nil, "CreateAPIKey": nil, "FindAPIKey": nil, "EnsureTenant": nil, "Tenants": nil,
		// the dispatcher's, for all tenants
		"ClaimMemory": nil, "MemoryDone": nil, "MemoryLater": nil, "ClaimOutbox": nil, "MarkDispatched": nil,
		"PostponeDispatch": nil, "ReviveDispatches": nil, "ForgetAbandoned": nil,
		// A key belongs to the tenant that its request names; TestKeyedRequests has two tenants with one key.
		"ClaimKey": nil, "ExtendKey": nil, "AnswerKey": nil, "ReleaseKey": nil,
		"EventHeads": func() error {
			heads, err := s.Timeline.Heads(ctx, []store.ConversationRef{{Tenant: "mallory", ID: conv.ID}})
			return none(len(heads), err)
		},
		// of the whole installation, and says no more than yes or no
		"HasAPIKeys": nil,
		"GetBreaker": nil, "PassBreaker": nil, "TripBreaker": nil, "ResetBreaker": nil, // TestBreaker
		"Import": nil, // internal/audit's TestImportBelongsToItsTenant
		// For whoever audits the whole installation.
		"ConversationsAfter": nil, "CountConversations": nil, "GetAuditJob": nil, "KeepAuditJob": nil,
		"EndAuditJob": nil, "Close": nil, "Ping": nil,
	}

	methods := reflect.TypeFor[*store.Store]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		if try, ok := refused[name]; ok {
			if err := try(); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: error %v", name, err)
			} else if strings.Contains(err.Error(), "SUM") {
				t.Errorf("%s tells: %v", name, err)
			}
			continue
		}
		try, ok := other[name]
		if !ok {
			t.Errorf("%s: what does another tenant get? Add it to this test", name)
		} else if try != nil {
			if err := try(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}

	// Its own conversation of the same id is another one, and so are its artifacts; a run of it cannot name ours.
	c, created, err := s.Conversations.Create(ctx, "mallory",
		conversations.NewConversation{ID: "c", Format: "anthropic"})
	if err != nil || !created || c.HeadSeq != 0 {
		t.Fatalf("created %t, head %d, %v", created, c.HeadSeq, err)
	}
	talk(t, s, conv, 1)
	if _, _, err := s.Runs.Request(ctx, conv, runs.Request{Kind: "manual", ReplayOf: r.Ref.ID}); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("a replay of another tenant's run: error %v", err)
	}
	theirs := request(t, s, conv)
	v, err := s.Contexts.Read(ctx, conv, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := markers.NewMarker{
		CoversFrom: 1, CoversTo: 1, CoveredMessages: 1, CoveredChain: v.Tail[0].Chain,
		Summary: m.Summary,
	}
	if _, err := s.Markers.Apply(ctx, theirs.Ref, n, runs.Facts{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a marker with another tenant's summary: error %v", err)
	}
	n.Base, n.Summary = m.ID, theirSummary(t, s, conv)
	if _, err := s.Markers.Apply(ctx, theirs.Ref, n, runs.Facts{}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a marker on another tenant's marker: error %v", err)
	}
	if after := contextOf(t, s, ref); after != before {
		t.Errorf("the context was %s and is %s", before, after)
	}
}

func none(n int, err error) error {
	if err == nil && n != 0 {
		return errors.New("it sees another tenant's")
	}
	return err
}

func theirSummary(t *testing.T, s *store.Store, ref store.ConversationRef) string {
	t.Helper()
	a, err := s.Artifacts.Put(t.Context(), ref, "summary", json.RawMessage("SUM"))
	if err != nil {
		t.Fatal(err)
	}
	return a.SHA256
}
