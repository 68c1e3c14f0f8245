package store_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"precis"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// secretRun makes an unfinished run with a focus, a stage's result and a model call to delete. It returns the run and
// the artifact of the model's answer.
func secretRun(t *testing.T, s *store.Store, ref store.ConversationRef) (run store.RunRef, answer string) {
	t.Helper()
	r, _, err := s.Runs.Request(t.Context(), ref, runs.Request{Kind: "manual", Focus: "secret focus"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Attempts.Record(t.Context(), r.Ref,
		runs.Attempt{Stage: "trigger", Call: 1, Attempt: 1, Outcome: contract.AttemptOK}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attempts.PutResult(t.Context(), r.Ref, "trigger", 1, []byte("secret result")); err != nil {
		t.Fatal(err)
	}
	call := modelcalls.Call{Call: 2, Attempt: 1, Vendor: "anthropic", Model: "m", Request: []byte("secret request")}
	if _, err := s.ModelCalls.Begin(t.Context(), r.Ref, call); err != nil {
		t.Fatal(err)
	}
	answer, err = s.ModelCalls.Finish(t.Context(), r.Ref, call,
		modelcalls.Result{Input: 5, Answer: []byte("secret answer")})
	if err != nil {
		t.Fatal(err)
	}
	return r.Ref, answer
}

// wantContentDeleted checks that everything that needs the content reports that it was deleted.
func wantContentDeleted(t *testing.T, s *store.Store, ref store.ConversationRef) {
	t.Helper()
	for what, try := range map[string]func() error{
		"append": func() error {
			_, err := s.Changes.Append(t.Context(), ref, []conversations.NewMessage{message(pipeline.RoleUser, "x")},
				changes.AppendOptions{})
			return err
		},
		"live":     func() error { _, err := s.Contexts.Read(t.Context(), ref, contexts.Options{}); return err },
		"messages": func() error { _, err := s.Messages.At(t.Context(), ref, []int64{1}); return err },
		"undo":     func() error { _, err := s.Markers.Undo(t.Context(), ref, ""); return err },
		"run": func() error {
			_, _, err := s.Runs.Request(t.Context(), ref, runs.Request{Kind: "manual"})
			return err
		},
		"state": func() error { _, err := s.LiveState.Get(t.Context(), ref, "plan"); return err },
	} {
		if err := try(); !errors.Is(err, store.ErrContentDeleted) || !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

// wantNoTrace checks that no column of any table holds the word, as text or in bytes.
func wantNoTrace(t *testing.T, db *pgxpool.Pool, word string) {
	t.Helper()
	rows, err := db.Query(t.Context(),
		`SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var tables []string
	for rows.Next() {
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		tables = append(tables, name)
	}
	if len(tables) < 15 {
		t.Errorf("tables %q", tables)
	}
	for _, table := range tables {
		var found int
		err := db.QueryRow(t.Context(),
			`SELECT count(*) FROM `+table+
				` t WHERE t::text LIKE '%' || $1 || '%' OR t::text LIKE '%' || $2 || '%'`,
			word, hex.EncodeToString([]byte(word))).Scan(&found)
		if err != nil || found != 0 {
			t.Errorf("%d rows of %s still hold %q, %v", found, table, word, err)
		}
	}
}

func TestDeleteConversationContent(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref, other := newConversation(t, s, "c"), newConversation(t, s, "d")
	system := json.RawMessage(`"secret system"`)
	if _, err := s.Changes.Update(t.Context(), ref, conversations.Patch{System: &system}); err != nil {
		t.Fatal(err)
	}
	appendTurns(t, s, ref, 3)
	appendTurns(t, s, other, 3)
	run, answer := secretRun(t, s, ref)
	shared, err := s.Artifacts.Put(t.Context(), ref, "prompt", []byte("shared"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Artifacts.Put(t.Context(), other, "prompt", []byte("shared")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.LiveState.Set(t.Context(), ref, "plan", []byte("secret plan")); err != nil {
		t.Fatal(err)
	}
	if err := s.Retention.DeleteContent(t.Context(), ref); !errors.Is(err, store.ErrRunActive) ||
		!errors.Is(err, store.ErrConflict) {
		t.Errorf("while a run is unfinished: error %v", err)
	}
	m, err := s.Markers.Apply(t.Context(), run, plan(t, s, ref, 4, "secret summary"), runs.Facts{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Retention.DeleteContent(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}

	wantContentDeleted(t, s, ref)
	for _, sha := range []string{m.Summary, answer} {
		if _, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, sha); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("artifact %s: error %v", sha, err)
		}
	}
	if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, shared.SHA256); err != nil ||
		string(got) != "shared" {
		t.Errorf("what another conversation shares: %q, %v", got, err)
	}
	got, err := s.Runs.Get(t.Context(), run)
	if err != nil || got.Outcome != precis.OutcomeApplied || len(got.Attempts) != 1 || got.Usage.Input != 5 ||
		got.Facts.CoveredChain != m.CoveredChain || got.Focus != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := s.Evidence.CheckChain(t.Context(), other, 6); err != nil {
		t.Errorf("the other conversation: %v", err)
	}
	c, err := s.Conversations.Get(t.Context(), ref)
	if err != nil || c.ContentDeleted.IsZero() || c.System != nil || c.HeadSeq != 6 {
		t.Errorf("%+v, %v", c, err)
	}
	wantNoTrace(t, raw(t, url), "secret")
}

// An artifact that one conversation writes while the content of another one with the same artifact is deleted still
// exists.
func TestDeleteArtifactRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for round := range 30 {
		data := fmt.Appendf(nil, "content %d", round)
		gone, stays := newConversation(t, s, fmt.Sprint("gone", round)),
			newConversation(t, s, fmt.Sprint("stays", round))
		a, err := s.Artifacts.Put(t.Context(), gone, "prompt", data)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := s.Retention.DeleteContent(t.Context(), gone); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := s.Artifacts.Put(t.Context(), stays, "prompt", data); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, a.SHA256); err != nil ||
			!bytes.Equal(got, data) {
			t.Fatalf("round %d: %q, %v", round, got, err)
		}
	}
}
