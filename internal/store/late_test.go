package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"precis"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/internal/store/seals"
	"precis/internal/store/timeline"
)

// underWay makes a run with a closed attempt, an open one and an open model call.
func underWay(t testing.TB, s *store.Store, ref store.ConversationRef) store.RunRef {
	t.Helper()
	ctx := t.Context()
	run := request(t, s, ref).Ref
	for _, a := range []runs.Attempt{
		{Stage: "trigger", Call: 1, Attempt: 1, Outcome: contract.AttemptOK, Worker: "w"},
		{Stage: "summarise", Call: 2, Attempt: 1, Outcome: contract.AttemptStarted, Worker: "w"},
	} {
		if err := s.Attempts.Record(ctx, run, a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Attempts.PutResult(ctx, run, "trigger", 1, []byte("due")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ModelCalls.Begin(ctx, run, openCall); err != nil {
		t.Fatal(err)
	}
	return run
}

var openCall = modelcalls.Call{Call: 2, Attempt: 1, Vendor: "v", Model: "m", Request: []byte("the request")}

type (
	conv   = store.ConversationRef
	runRef = store.RunRef
)

// lateFact is something that is written into the record of a run after its end.
type lateFact struct {
	name  string
	kept  bool
	write func(*testing.T, *store.Store, conv, runRef) error
}

// lateFacts are writes of an ended run's record, by everything that writes into it. Those that are kept are sealed.
var lateFacts = []lateFact{
	{"the answer of the model", true, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		_, err := s.ModelCalls.Finish(t.Context(), run, openCall, modelcalls.Result{Input: 9, Answer: []byte("late")})
		return err
	}},
	{"the failure of the model", true, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		_, err := s.ModelCalls.Finish(t.Context(), run, openCall, modelcalls.Result{ErrorKind: "timeout"})
		return err
	}},
	{"a request that was sent and not booked", true, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		call := openCall
		call.Attempt = 2
		_, err := s.ModelCalls.Finish(t.Context(), run, call, modelcalls.Result{Input: 9, Answer: []byte("late")})
		return err
	}},
	{"a new request", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		call := openCall
		call.Call = 7
		_, err := s.ModelCalls.Begin(t.Context(), run, call)
		return err
	}},
	{"the same request again", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		_, err := s.ModelCalls.Begin(t.Context(), run, openCall)
		return err
	}},
	{"the end of the attempt", true, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		return s.Attempts.Record(t.Context(), run, runs.Attempt{
			Stage: "summarise", Call: 2, Attempt: 1, Outcome: contract.AttemptFailed, ErrorKind: "cancelled",
		})
	}},
	{"the retry of an attempt that was lost", true, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		return s.Attempts.Record(t.Context(), run, runs.Attempt{
			Stage: "summarise", Call: 2, Attempt: 2, Outcome: contract.AttemptStarted,
		})
	}},
	{"the first attempt of a second workflow", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		return s.Attempts.Record(t.Context(), run, runs.Attempt{
			Stage: "trigger", Call: 1, Attempt: 1, Outcome: contract.AttemptStarted, Worker: "another",
		})
	}},
	{"a new attempt", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		return s.Attempts.Record(t.Context(), run, runs.Attempt{
			Stage: "finish", Call: 3, Attempt: 1, Outcome: contract.AttemptStarted,
		})
	}},
	{"the start of an attempt under a number of its own", false, func(t *testing.T, s *store.Store, _ conv,
		run runRef,
	) error {
		_, _, err := s.Attempts.Begin(t.Context(), run, runs.Attempt{
			Stage: "trigger", Call: 1, Attempt: 1, Outcome: contract.AttemptStarted,
		}, true)
		return err
	}},
	{"what followed an attempt", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		return s.Attempts.NoteNext(t.Context(), run, "trigger", 1, "once_more", "timeout")
	}},
	{"the result of a stage", true, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		_, err := s.Attempts.PutResult(t.Context(), run, "reassemble", 3, []byte("result"))
		return err
	}},
	{"who wrote the summary", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		return s.Runs.RecordFacts(t.Context(), run, runs.Facts{
			Summarizer: "self", PromptName: "p", Mode: "explicit", Verification: json.RawMessage(`{"misattributed":1}`),
		})
	}},
	{"the figures of the trigger", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		return s.Runs.RecordFacts(t.Context(), run, runs.Facts{TokensBefore: 9, Head: 3, Numbers: []byte(`{"a":1}`)})
	}},
	{"another end", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		r, err := s.Runs.Finish(t.Context(), run, runs.End{Outcome: precis.OutcomeFailed, ErrorKind: "internal"})
		if err == nil && r.Outcome == precis.OutcomeCancelled {
			err = store.ErrRunEnded // it reports the first end
		}
		return err
	}},
	{"a start", false, func(t *testing.T, s *store.Store, _ conv, run runRef) error {
		r, err := s.Runs.Start(t.Context(), run, "another")
		if err == nil && r.TemporalRunID != "another" {
			err = store.ErrRunEnded
		}
		return err
	}},
	{"an event", true, func(t *testing.T, s *store.Store, ref conv, run runRef) error {
		_, err := s.Timeline.Append(t.Context(), ref,
			timeline.Event{Kind: timeline.Warning, Run: run.ID})
		return err
	}},
	{"a text", true, func(t *testing.T, s *store.Store, ref conv, _ runRef) error {
		_, err := s.Artifacts.Put(t.Context(), ref,
			contract.ArtifactSummary, []byte("late"))
		return err
	}},
}

// What comes after the end of a run is sealed as what it is, or dropped. Neither looks like tampering, also when the
// conversation was deleted meanwhile.
func TestLateFactsVerify(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	db := raw(t, url)
	for i, late := range lateFacts {
		lateFactVerifies(t, s, db, fmt.Sprint("c", i), false, late)
		if late.name != "a text" && late.name != "an event" { // they are of the conversation
			lateFactVerifies(t, s, db, fmt.Sprint("d", i), true, late)
		}
	}
}

func lateFactVerifies(t *testing.T, s *store.Store, db *pgxpool.Pool, id string, deleted bool, late lateFact) {
	t.Helper()
	ref := livedConversation(t, s, id)
	run := underWay(t, s, ref)
	if _, err := s.Runs.Finish(t.Context(), run, runs.End{Outcome: precis.OutcomeCancelled}); err != nil {
		t.Fatal(err)
	}
	if deleted {
		if err := s.Retention.DeleteContent(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	before := rowsOf(t, db, run)
	for range 2 { // written again, it changes nothing
		switch err := late.write(t, s, ref, run); {
		case late.kept && err != nil:
			t.Fatalf("%s: %v", late.name, err)
		case !late.kept && !errors.Is(err, store.ErrRunEnded):
			t.Fatalf("%s: error %v, want ErrRunEnded", late.name, err)
		}
	}
	if diff := cmp.Diff(before, rowsOf(t, db, run)); !late.kept && diff != "" {
		t.Errorf("%s: the record was changed (-before +after):\n%s", late.name, diff)
	}
	for _, f := range findingsOf(t, s, ref) {
		if string(f.State) != "pruned" || !deleted {
			t.Errorf("%s: %+v", late.name, f)
		}
	}
	var texts int
	err := db.QueryRow(t.Context(), `SELECT count(*) FROM artifact_links JOIN conversations USING (cid) WHERE id = $1`,
		id).Scan(&texts)
	if err != nil || deleted && texts > 0 {
		t.Errorf("%s: %d texts after the deletion, %v", late.name, texts, err)
	}
}

// All late facts of a run, one after another.
func TestAllLateFactsVerify(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := livedConversation(t, s, "c")
	run := underWay(t, s, ref)
	if _, err := s.Runs.Finish(t.Context(), run, runs.End{Outcome: precis.OutcomeCancelled}); err != nil {
		t.Fatal(err)
	}
	for _, late := range lateFacts {
		if err := late.write(t, s, ref, run); err != nil && !errors.Is(err, store.ErrRunEnded) {
			t.Errorf("%s: %v", late.name, err)
		}
		if findings := findingsOf(t, s, ref); len(findings) > 0 {
			t.Fatalf("after %s:\n%s", late.name, textOf(findings))
		}
	}
}

// rowsOf returns every row of a run as JSON, of all tables that its seals hold.
func rowsOf(t testing.TB, db *pgxpool.Pool, run store.RunRef) []string {
	t.Helper()
	var all []string
	for _, table := range seals.Tables[seals.Run] {
		column := "run"
		switch table.Name {
		case "artifacts":
			continue // the conversation's, additions do no harm
		case "runs":
			column = "id"
		}
		rows, err := db.Query(t.Context(), `SELECT to_jsonb(t)::text FROM `+table.Name+` t WHERE `+column+` = $1`, run.ID)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			var row string
			if err := rows.Scan(&row); err != nil {
				t.Fatal(err)
			}
			all = append(all, table.Name+" "+row)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(all)
	return all
}

// Rows of a run are written through seals.ChangeRun only, but for its request, its end, its marker and a deletion.
// A file that writes to a table of a run must be one of these, or use it.
func TestRunsAreWrittenInOnePlace(t *testing.T) {
	t.Parallel()
	own := map[string]bool{
		"runs/request.go": true, "runs/replay.go": true, "runs/finish.go": true, "markers/prepared.go": true,
		"retention/delete.go": true,
	}
	var names []string
	for _, table := range seals.Tables[seals.Run] {
		if table.Name != "artifacts" {
			names = append(names, table.Name)
		}
	}
	writes := regexp.MustCompile(`(INSERT INTO|UPDATE|DELETE FROM)\s+(` + strings.Join(names, "|") + `)\b`)
	found := 0
	files, err := filepath.Glob("*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") || !writes.Match(text) {
			continue
		}
		found++
		if !own[file] && strings.Count(string(text), "s.db.Write(") > 0 || !own[file] &&
			!strings.Contains(string(text), "seals.ChangeRun(") {
			t.Errorf("%s writes rows of a run without seals.ChangeRun", file)
		}
	}
	if found < len(own)+3 {
		t.Errorf("%d files that write rows of a run: the pattern misses some", found)
	}
}

// A run that has ended is never claimed from the outbox.
func TestOutboxDropsEndedRuns(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "c")
	run := request(t, s, ref)
	if _, err := s.Runs.Finish(t.Context(), run.Ref, runs.End{Outcome: precis.OutcomeCancelled}); err != nil {
		t.Fatal(err)
	}
	if _, err := raw(t, url).Exec(t.Context(), `UPDATE outbox SET dispatched_at = NULL, due_at = now()`); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Outbox.Claim(t.Context(), 10, 0); err != nil || len(list) > 0 {
		t.Errorf("claimed %+v, %v", list, err)
	}
	var left int
	if err := raw(t, url).QueryRow(t.Context(), `SELECT count(*) FROM outbox WHERE dispatched_at IS NULL`).
		Scan(&left); err != nil || left != 0 {
		t.Errorf("%d rows are left, %v", left, err)
	}
}
