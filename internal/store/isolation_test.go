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

	"precis/internal/memory/search"
	"precis/internal/store"
	"precis/pipeline"
)

// Whatever a tenant asks of what is another's, it does not exist. The table has every method that could be asked:
// one that is added without a line here fails the test.
func TestTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.EnsureTenant(t.Context(), "mallory", ""); err != nil {
		t.Fatal(err)
	}
	ref := newConversation(t, s, "c")
	talk(t, s, ref, 5)
	m := compact(t, s, ref, 4, "SUM")
	r := request(t, s, ref)
	before := contextOf(t, s, ref)
	p, err := s.OpenReply(t.Context(), ref, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.SetEnrichment(t.Context(), ref, "plan", []byte("p")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.PutNote(t.Context(), ref, store.NewNote{Name: "plan.md", Text: []byte("SUM")}); err != nil {
		t.Fatal(err)
	}
	query, err := search.Parse("SUM")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PutStageResult(t.Context(), r.Ref, "slim", 1, []byte("x")); err != nil {
		t.Fatal(err)
	}
	call := store.ModelCall{Call: 1, Attempt: 1, Vendor: "v", Model: "m"}
	if _, err := s.FinishCall(t.Context(), r.Ref, call, store.CallResult{Answer: []byte("a")}); err != nil {
		t.Fatal(err)
	}

	batch, err := s.CreateReplayBatch(t.Context(), store.DefaultTenant, nil, 1)
	if err != nil {
		t.Fatal(err)
	}

	conv := store.ConversationRef{Tenant: "mallory", ID: "c"}
	run := store.RunRef{Tenant: "mallory", ID: r.Ref.ID}
	ctx := t.Context()
	one := []store.NewMessage{message(pipeline.RoleUser, "x")}
	refused := map[string]func() error{
		"Append":       func() error { _, err := s.Append(ctx, conv, one, store.AppendOptions{}); return err },
		"AppendEvent":  func() error { _, err := s.AppendEvent(ctx, conv, store.Event{Kind: "warning"}); return err },
		"AppendStream": func() error { _, err := s.AppendStream(ctx, conv, nil); return err },
		"ApplyMarker": func() error {
			_,
				err := s.ApplyMarker(ctx, run, store.NewMarker{}, store.RunFacts{})
			return err
		},
		"ApplyPrepared": func() error {
			_, _, err := s.ApplyPrepared(ctx, conv, m.ID, store.Application{})
			return err
		},
		"Answer":     func() error { _, err := s.Answer(ctx, run, 1); return err },
		"BeginReply": func() error { _, _, err := s.BeginReply(ctx, conv, time.Hour); return err },
		"BeginCall":  func() error { _, err := s.BeginCall(ctx, run, call); return err },
		"ChangeConversation": func() error {
			_, _, err := s.ChangeConversation(ctx, conv,
				func(store.Conversation) (store.ConversationPatch, error) { return store.ConversationPatch{}, nil },
				nil)
			return err
		},
		"CheckChain":                func() error { _, err := s.CheckChain(ctx, conv, 0); return err },
		"CloseReply":                func() error { _, err := s.CloseReply(ctx, conv, p.ID); return err },
		"DeleteConversationContent": func() error { return s.DeleteConversationContent(ctx, conv) },
		"DiscardPreparedOf":         func() error { return s.DiscardPreparedOf(ctx, conv, r.Ref.ID, "x") },
		"DiscardPrepared":           func() error { return s.DiscardPrepared(ctx, conv, "x") },
		"EndReply": func() error {
			_, _,
				err := s.EndReply(ctx, conv, p.ID, store.ReplyEnd{})
			return err
		},
		"Enrichments": func() error { _, err := s.Enrichments(ctx, conv); return err },
		"Events":      func() error { _, err := s.Events(ctx, conv, 0, 0); return err },
		"FinishCall": func() error {
			_,
				err := s.FinishCall(ctx, run, call, store.CallResult{})
			return err
		},
		"FinishRun": func() error {
			_, err := s.FinishRun(ctx, run, store.RunEnd{Outcome: store.OutcomeFailed})
			return err
		},
		"GetArtifact":     func() error { _, err := s.GetArtifact(ctx, "mallory", m.Summary); return err },
		"GetConversation": func() error { _, err := s.GetConversation(ctx, conv); return err },
		"GetEnrichment":   func() error { _, err := s.GetEnrichment(ctx, conv, "plan"); return err },
		"GetMarker":       func() error { _, err := s.GetMarker(ctx, conv, m.ID); return err },
		"GetRun":          func() error { _, err := s.GetRun(ctx, run); return err },
		"GetSegment":      func() error { _, err := s.GetSegment(ctx, conv, "plan.md"); return err },
		"GetSyncState":    func() error { _, err := s.GetSyncState(ctx, conv); return err },
		"KeepSyncChain":   func() error { return s.KeepSyncChain(ctx, conv, 10, store.Hash{1}) },
		"Look": func() error {
			return s.Look(ctx, conv,
				func(context.Context, store.Moment) error { return nil })
		},
		"Ledger": func() error { _, err := s.Ledger(ctx, run); return err },
		"GetReplayBatch": func() error {
			_, err := s.GetReplayBatch(ctx, store.BatchRef{Tenant: "mallory", ID: batch.Ref.ID})
			return err
		},
		"FinishReplayBatch": func() error {
			_, err := s.FinishReplayBatch(ctx, store.BatchRef{Tenant: "mallory", ID: batch.Ref.ID}, false)
			return err
		},
		"ReplayBatchTotals": func() error {
			_, err := s.ReplayBatchTotals(ctx, store.BatchRef{Tenant: "mallory", ID: batch.Ref.ID})
			return err
		},
		"GetState":       func() error { _, err := s.GetState(ctx, "mallory", m.Summary); return err },
		"KeepComparison": func() error { return s.KeepComparison(ctx, run, []byte("{}"), nil) },
		"KeepState": func() error {
			_, err := s.KeepState(ctx, run, store.LiveView{Conversation: store.Conversation{Ref: conv}}, nil)
			return err
		},
		"LiveViewAt": func() error {
			_,
				err := s.LiveViewAt(ctx, conv, store.State{}, store.LiveOptions{})
			return err
		},
		"LiveSums": func() error { _, err := s.LiveSums(ctx, conv); return err },
		"LiveView": func() error { _, err := s.LiveView(ctx, conv, store.LiveOptions{}); return err },
		"MarkRunDispatched": func() error {
			return s.MarkRunDispatched(ctx, run)
		},
		"Markers": func() error { _, err := s.Markers(ctx, conv); return err },
		"Messages": func() (err error) {
			for _, err = range s.Messages(ctx, conv, 1, 0) {
				return err
			}
			return nil
		},
		"MessagesAt":  func() error { _, err := s.MessagesAt(ctx, conv, []int64{1}); return err },
		"NoteNext":    func() error { return s.NoteNext(ctx, run, "slim", 1, "x", "") },
		"OpenReply":   func() error { _, err := s.OpenReply(ctx, conv, time.Hour); return err },
		"PutArtifact": func() error { _, err := s.PutArtifact(ctx, conv, "x", []byte("x")); return err },
		"PrepareMarker": func() error {
			_, err := s.PrepareMarker(ctx, run, store.NewMarker{}, store.RunFacts{})
			return err
		},
		"PutNote":        func() error { _, _, err := s.PutNote(ctx, conv, store.NewNote{Name: "x"}); return err },
		"KeepSegments":   func() error { return s.KeepSegments(ctx, conv, nil) },
		"MeasureSegment": func() error { return s.MeasureSegment(ctx, conv, "plan.md", 1) },
		"AddSearchTexts": func() error { return s.AddSearchTexts(ctx, conv, nil, 1) },
		"SearchIndex":    func() error { _, _, err := s.SearchIndex(ctx, conv); return err },
		"Search":         func() error { _, err := s.Search(ctx, conv, query, nil, 1); return err },
		"SearchInside":   func() error { _, err := s.SearchInside(ctx, conv, query, nil, 1); return err },
		"PutStageResult": func() error { _, err := s.PutStageResult(ctx, run, "slim", 2, []byte("y")); return err },
		"RecordFacts":    func() error { return s.RecordFacts(ctx, run, store.RunFacts{Summarizer: "x"}) },
		"RecordStep": func() error {
			return s.RecordStep(ctx, run, store.Step{Stage: "slim", Call: 1, Attempt: 1, Outcome: store.StepOK})
		},
		"RecordUsage": func() error { _, err := s.RecordUsage(ctx, conv, store.UsageReport{Tokens: 1}); return err },
		"ReportMarker": func() error {
			_, err := s.ReportMarker(ctx, conv, store.ReportedMarker{Origin: store.OriginAgent, CoversTo: 6})
			return err
		},
		"RequestRun": func() error {
			_, _,
				err := s.RequestRun(ctx, conv, store.RunRequest{Kind: "manual"})
			return err
		},
		"Segments": func() error { _, err := s.Segments(ctx, conv); return err },
		"SetEnrichment": func() error {
			_, err := s.SetEnrichment(ctx, conv, "plan", []byte("x"))
			return err
		},
		"SetRenderedEnrichment": func() error {
			_, err := s.SetRenderedEnrichment(ctx, conv, "plan", []byte("x"), nil)
			return err
		},
		"SyncChains":  func() error { _, err := s.SyncChains(ctx, conv, []int64{1}); return err },
		"Watch":       func() error { _, _, err := s.Watch(ctx, conv, nil); return err },
		"StageResult": func() error { _, err := s.StageResult(ctx, run, "slim", 1); return err },
		"StartRun":    func() error { _, err := s.StartRun(ctx, run, "t"); return err },
		"Undo":        func() error { _, err := s.Undo(ctx, conv, ""); return err },
		"UpdateConversation": func() error {
			_,
				err := s.UpdateConversation(ctx, conv, store.ConversationPatch{})
			return err
		},
		"Prunable": func() error { _, err := s.Prunable(ctx, conv, store.PruneRule{}); return err },
		"PruneArtifacts": func() error {
			_,
				err := s.PruneArtifacts(ctx, conv, store.PruneRule{}, nil)
			return err
		},
		"PruneMessages": func() error { _, err := s.PruneMessages(ctx, conv, 1, nil); return err },
		"ImportedFrom":  func() error { _, _, err := s.ImportedFrom(ctx, conv); return err },
		"Export":        func() error { return s.Export(ctx, conv, nil, nil) },
		"Verify": func() error {
			return s.Verify(ctx, conv, func(context.Context, *store.Verification) error { return nil })
		},
	}
	// These take a tenant and find nothing of another's, or take none since they are the process's own.
	other := map[string]func() error{
		"APIKeys":            func() error { _, err := s.APIKeys(ctx, "mallory"); return err },
		"CreateConversation": nil, // below
		"ListConversations": func() error {
			list, _, err := s.ListConversations(ctx, "nobody", "", 0)
			return none(len(list), err)
		},
		"CountRuns": func() error {
			list, err := s.CountRuns(ctx, "mallory", store.RunFilter{})
			return none(len(list), err)
		},
		"ListRuns": func() error {
			list, _, err := s.ListRuns(ctx, "mallory", store.RunFilter{})
			return none(len(list), err)
		},
		"FindRun": nil, // TestFindRun
		"SummariseRuns": func() error {
			list, err := s.SummarizeRuns(ctx, "mallory", store.RunFilter{})
			return none(len(list), err)
		},
		"CreateReplayBatch": func() error {
			if _, err := s.CreateReplayBatch(ctx, "nobody", nil, 0); !errors.Is(err, store.ErrNotFound) {
				return fmt.Errorf("a batch of nobody's: error %w", err)
			}
			return nil
		},
		"Replayables": func() error {
			list, _, err := s.Replayables(ctx, "mallory", store.ReplayFilter{}, "", 0)
			return none(len(list), err)
		},
		"CountReplayables": func() error {
			n, err := s.CountReplayables(ctx, "mallory", store.ReplayFilter{})
			return none(n, err)
		},
		"TokensUsed": func() error {
			n, err := s.TokensUsed(ctx, "mallory", time.Time{})
			return none(int(n), err)
		},
		"ChangeTenantSettings": nil, "TenantSettings": nil, // TestTenantSettings
		"UsageBy": func() error {
			list, err := s.UsageBy(ctx, "mallory", "model", time.Time{})
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
			heads, err := s.EventHeads(ctx, []store.ConversationRef{{Tenant: "mallory", ID: conv.ID}})
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
	c, created, err := s.CreateConversation(ctx, "mallory", store.NewConversation{ID: "c", Format: "anthropic"})
	if err != nil || !created || c.HeadSeq != 0 {
		t.Fatalf("created %t, head %d, %v", created, c.HeadSeq, err)
	}
	talk(t, s, conv, 1)
	if _, _, err := s.RequestRun(ctx, conv, store.RunRequest{Kind: "manual", ReplayOf: r.Ref.ID}); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("a replay of another tenant's run: error %v", err)
	}
	theirs := request(t, s, conv)
	v, err := s.LiveView(ctx, conv, store.LiveOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := store.NewMarker{
		CoversFrom: 1, CoversTo: 1, CoveredMessages: 1, CoveredChain: v.Tail[0].Chain,
		Summary: m.Summary,
	}
	if _, err := s.ApplyMarker(ctx, theirs.Ref, n, store.RunFacts{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a marker with another tenant's summary: error %v", err)
	}
	n.Base, n.Summary = m.ID, theirSummary(t, s, conv)
	if _, err := s.ApplyMarker(ctx, theirs.Ref, n, store.RunFacts{}); !errors.Is(err, store.ErrConflict) {
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
	a, err := s.PutArtifact(t.Context(), ref, "summary", json.RawMessage("SUM"))
	if err != nil {
		t.Fatal(err)
	}
	return a.SHA256
}
