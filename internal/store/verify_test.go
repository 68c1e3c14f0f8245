package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"precis"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/evidence"
	"precis/internal/store/markers"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
)

// behind changes rows without the store, with all triggers and foreign keys off.
func behind(t testing.TB, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
		t.Fatal(err)
	}
	tag, err := tx.Exec(t.Context(), sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if tag.RowsAffected() == 0 {
		t.Fatalf("%s: no row is concerned", sql)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// findingsOfAll verifies all conversations of all tenants.
func findingsOfAll(t testing.TB, s *store.Store) []evidence.Finding {
	t.Helper()
	all, err := s.Evidence.After(t.Context(), evidence.Filter{}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var list []evidence.Finding
	for _, c := range all {
		list = append(list, findingsOf(t, s, c.Ref)...)
	}
	return list
}

// findingsOf verifies a conversation with every check of the store.
func findingsOf(t testing.TB, s *store.Store, ref store.ConversationRef) []evidence.Finding {
	t.Helper()
	var list []evidence.Finding
	err := s.Evidence.Verify(t.Context(), ref, func(ctx context.Context, v *evidence.Verification) error {
		messages, _, err := v.Messages(ctx)
		if err != nil {
			return err
		}
		events, err := v.Events(ctx)
		if err != nil {
			return err
		}
		seals, _, err := v.Seals(ctx)
		if err != nil {
			return err
		}
		list = slices.Concat(messages.List, events.List, seals.List)
		runs, err := v.Runs(ctx)
		if err != nil {
			return err
		}
		for _, run := range runs {
			var f evidence.Findings
			refs, err := v.References(ctx, run)
			if err != nil {
				return err
			}
			for _, r := range refs {
				if _, err := v.Artifact(ctx, &f, r); err != nil {
					return err
				}
			}
			list = append(list, f.List...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func textOf(list []evidence.Finding) string {
	var b strings.Builder
	for _, f := range list {
		fmt.Fprintf(&b, "%s %s %s %s: %s\n", f.State, f.Table, f.Key, f.Column, f.Detail)
	}
	return b.String()
}

// lived makes a conversation with everything that is sealed: runs of each outcome, markers of each status, live state,
// an undo, and a change of its configuration.
func lived(t testing.TB, s *store.Store, id string) store.ConversationRef {
	t.Helper()
	ref := livedConversation(t, s, id)
	run := livedRun(t, s, ref)
	failed := request(t, s, ref)
	if _, err := s.Runs.Finish(t.Context(), failed.Ref,
		runs.End{
			Outcome: precis.OutcomeFailed, ErrorKind: "auth", Reason: "no key",
			Event: &timeline.Event{Kind: timeline.Finished},
		}); err != nil {
		t.Fatal(err)
	}
	window := 5000
	if _, err := s.Changes.Update(t.Context(), ref, conversations.Patch{Window: &window}); err != nil {
		t.Fatal(err)
	}
	livedReplay(t, s, ref, run)
	livedMarkers(t, s, ref)
	appendTurns(t, s, ref, 1)
	return ref
}

// livedConversation makes a conversation with every field set, messages and live state.
func livedConversation(t testing.TB, s *store.Store, id string) store.ConversationRef {
	t.Helper()
	ctx := t.Context()
	raw := json.RawMessage(`{"a":"` + id + `"}`)
	c, _, err := s.Conversations.Create(ctx, store.DefaultTenant, conversations.NewConversation{
		ID: id, Format: "anthropic", Vendor: "v", Model: "m", System: raw, Tools: raw, Envelope: raw, Settings: raw,
		Metadata: raw,
	})
	if err != nil {
		t.Fatal(err)
	}
	ref := c.Ref
	first := message("user", "the first of "+id)
	first.ClientID, first.Fingerprint = "client-id", store.Hash{1}
	if _, err := s.Changes.Append(ctx, ref, []conversations.NewMessage{first}, changes.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	appendTurns(t, s, ref, 4)
	if _, err := s.LiveState.SetRendered(ctx, ref, "todo", []byte("one"), []byte(`{"items":["one"]}`)); err != nil {
		t.Fatal(err)
	}
	return ref
}

// livedRun makes a run with a model call, attempts and an applied marker, and adds to the run after its end.
func livedRun(t testing.TB, s *store.Store, ref store.ConversationRef) store.RunRef {
	t.Helper()
	ctx := t.Context()
	r, _, err := s.Runs.Request(ctx, ref,
		runs.Request{Kind: "manual", Focus: "the tests", Settings: []byte(`{"digest":"always"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runs.Start(ctx, r.Ref, "temporal-run"); err != nil {
		t.Fatal(err)
	}
	call := modelcalls.Call{Call: 1, Attempt: 1, Vendor: "v", Model: "m", Request: []byte("the request of " + ref.ID)}
	if _, err := s.ModelCalls.Begin(ctx, r.Ref, call); err != nil {
		t.Fatal(err)
	}
	answer, err := s.ModelCalls.Finish(ctx, r.Ref, call,
		modelcalls.Result{
			Input: 5, CachedInput: 2, CacheWrite: 1, Output: 3, Answer: []byte("the answer of " + ref.ID),
			RequestID: "req",
		})
	if err != nil {
		t.Fatal(err)
	}
	attempt := runs.Attempt{
		Stage: "summarise", Call: 1, Attempt: 1, Rung: "first", Summarizer: "self", Outcome: contract.AttemptOK,
		Worker: "w", Numbers: []byte(`{"tokens":3}`), Artifacts: map[contract.ArtifactKind]string{"answer": answer},
		Took: time.Second,
	}
	if err := s.Attempts.Record(ctx, r.Ref, attempt); err != nil {
		t.Fatal(err)
	}
	applyLived(t, s, ref, r.Ref)
	// What comes after the end of a run is sealed too.
	if _, err := s.Attempts.PutResult(ctx, r.Ref, "reassemble", 2, []byte("result")); err != nil {
		t.Fatal(err)
	}
	attempt.Stage, attempt.Call = "reassemble", 2
	if err := s.Attempts.Record(ctx, r.Ref, attempt); err != nil {
		t.Fatal(err)
	}
	return r.Ref
}

// applyLived applies a marker with every field set to a run.
func applyLived(t testing.TB, s *store.Store, ref store.ConversationRef, run store.RunRef) {
	t.Helper()
	ctx := t.Context()
	raw := json.RawMessage(`{"a":"` + ref.ID + `"}`)
	context, err := s.Artifacts.Put(ctx, ref, contract.ArtifactContext, []byte("the context of "+ref.ID))
	if err != nil {
		t.Fatal(err)
	}
	facts := runs.Facts{
		Summarizer: "self", Rung: "first", PromptName: "p", PromptVersion: "1", Mode: "explicit",
		Context: context.SHA256, Snapshot: context.SHA256, Verification: []byte(`{"misattributed":0}`),
		Numbers: []byte(`{"omitted":0}`),
	}
	marker := plan(t, s, ref, 4, "the summary of "+ref.ID)
	native, err := s.Artifacts.Put(ctx, ref, contract.ArtifactNative, []byte("the vendor's own of "+ref.ID))
	if err != nil {
		t.Fatal(err)
	}
	marker.Native, marker.NativeUse, marker.Draft = native.SHA256, raw,
		json.RawMessage(`{"summary":"`+marker.Summary+`"}`)
	if _, err := s.Markers.Apply(ctx, run, marker, facts); err != nil {
		t.Fatal(err)
	}
}

// livedReplay makes a replay of a run in a batch, with a comparison.
func livedReplay(t testing.TB, s *store.Store, ref store.ConversationRef, run store.RunRef) {
	t.Helper()
	ctx := t.Context()
	batch, err := s.Batches.Create(ctx, ref.Tenant, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	replay, _, err := s.Runs.Request(ctx, ref,
		runs.Request{
			Kind: "manual", ReplayOf: run.ID,
			Replay: runs.ReplayOptions{Live: true, Batch: batch.Ref.ID},
		})
	if err != nil {
		t.Fatal(err)
	}
	same := false
	if err := s.Replays.KeepComparison(ctx, replay.Ref, []byte(`{"live":true}`), &same); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Runs.Finish(ctx, replay.Ref, runs.End{Outcome: precis.OutcomeCancelled}); err != nil {
		t.Fatal(err)
	}
}

// livedMarkers makes a marker that is prepared, applied and undone, and one that an agent reported.
func livedMarkers(t testing.TB, s *store.Store, ref store.ConversationRef) {
	t.Helper()
	ctx := t.Context()
	prepared, err := s.Markers.Prepare(ctx, prepare(t, s, ref).Ref, plan(t, s, ref, 6, "the second of "+ref.ID),
		runs.Facts{Summarizer: "digest", Digest: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Markers.ApplyPrepared(ctx, ref, prepared.ID,
		markers.Application{Numbers: []byte(`{"look_ahead":0}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Markers.Undo(ctx, ref, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Markers.Report(ctx, ref,
		markers.Reported{Origin: markers.OriginAgent, CoversTo: 7, Summary: []byte("by the agent")}); err != nil {
		t.Fatal(err)
	}
}

func TestWhatTheStoreDoesVerifies(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := lived(t, s, "c")
	if findings := findingsOf(t, s, ref); len(findings) > 0 {
		t.Errorf("nothing was changed, and it finds\n%s", textOf(findings))
	}
	if err := s.Retention.DeleteContent(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	for _, f := range findingsOf(t, s, ref) {
		if f.State != evidence.Pruned {
			t.Errorf("after the content was removed: %+v", f)
		}
	}
	var leaked int
	if err := raw(t, url).QueryRow(t.Context(), `SELECT count(*) FROM seals WHERE convert_from(record, 'UTF8') ~ $1`,
		"the tests|"+
			fmt.Sprintf("%x", "the tests")+"|"+fmt.Sprintf("%x", `{"a":"c"}`)).Scan(&leaked); err != nil || leaked > 0 {
		t.Errorf("%d seals hold text that was removed, %v", leaked, err)
	}
}

// unproved are the tables that verification does not cover, and why.
var unproved = map[string]string{
	"api_keys":             "who may ask, not what was done",
	"audit_jobs":           "how far a verification has come",
	"breakers":             "counters that decide about the next run",
	"goose_db_version":     "the migrations' own",
	"idempotency_keys":     "answers that are kept for a day",
	"outbox":               "work to be done; a run that has ended needs none",
	"replay_batches":       "what a call asked for; each replay is a run of its own",
	"replies":              "leases that expire",
	"seal_signatures":      "verified with the key, where there is one: see TestRewrittenHashesAreFound",
	"search_texts":         "made from the messages, and made again at any time",
	"segments":             "made from the messages, and an agent's own notes",
	"tenant_usage_changes": "the same within a transaction; never committed",
	"tenant_usage":         "counts what is stored, for quotas",
	"tenants":              "their settings are in every run's own",
}

// Verification covers every column of every table, or committedColumns has the reason why not. A migration that adds a
// column without a place in seals.Tables fails here.
func TestEveryColumnIsCommittedTo(t *testing.T) {
	t.Parallel()
	_, url := newStore(t)
	db := raw(t, url)
	rows, err := db.Query(t.Context(), `SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = current_schema() ORDER BY table_name, ordinal_position`)
	if err != nil {
		t.Fatal(err)
	}
	committed := committedColumns()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		if _, ok := unproved[table]; ok {
			continue
		}
		if _, ok := committed[table][column]; !ok {
			t.Errorf("%s.%s: verification does not cover it: add it to seals.Tables or committedColumns, and to "+
				"docs/audit.md", table, column)
		}
		delete(committed[table], column)
	}
	for table, columns := range committed {
		for column := range columns {
			t.Errorf("%s.%s does not exist", table, column)
		}
	}
}

// A changed value in any covered column is found, with its table. The columns are read from the schema, so that new
// ones are tested too.
func TestEveryChangeIsFound(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	db := raw(t, url)
	lived(t, s, "c")
	for table, columns := range committedColumns() {
		for column, why := range columns {
			if why != "" || column == "content_deleted_at" { // tried by what does not look for content
				continue
			}
			change := changed(t, db, table, column)
			if change == "" {
				continue
			}
			undo := snapshotOf(t, db, table)
			behind(t, db, change)
			list := findingsOfAll(t, s)
			undo()
			if !names(list, table, column) {
				t.Errorf("%s: found\n%s", change, textOf(list))
			}
		}
	}
	if findings := findingsOfAll(t, s); len(findings) > 0 {
		t.Fatalf("all is as it was, and it finds\n%s", textOf(findings))
	}
}

// names reports whether a finding names the table, or the column in its detail.
func names(list []evidence.Finding, table, column string) bool {
	for _, f := range list {
		if f.State != evidence.Pruned && f.Table == table {
			return true
		}
		// A head that was raised looks like missing rows before it.
		if strings.Contains(f.Detail, table+"."+column) {
			return true
		}
	}
	return false
}

// changed returns a statement that changes a column of one row to another value of its type, "" if no row has a value.
func changed(t testing.TB, db *pgxpool.Pool, table, column string) string {
	t.Helper()
	var kind string
	err := db.QueryRow(t.Context(), `SELECT data_type FROM information_schema.columns
		WHERE table_schema = current_schema() AND table_name = $1 AND column_name = $2`, table, column).Scan(&kind)
	if err != nil {
		t.Fatalf("%s.%s: %v", table, column, err)
	}
	quoted := `"` + column + `"`
	to := map[string]string{
		"bigint": `%s + 1000`, "integer": `%s + 1000`, "double precision": `%s + 1`, "boolean": `NOT %s`,
		"timestamp with time zone": `%s + interval '1 second'`, "jsonb": `%s || '{"forged":1}'`,
		"bytea": `set_byte(%s, octet_length(%[1]s) - 1, get_byte(%[1]s, octet_length(%[1]s) - 1) # 1)`,
		"ARRAY": `%s || 1`, "text": `%s || 'x'`,
	}[kind]
	if to == "" {
		t.Fatalf("%s.%s: how is a %s changed?", table, column, kind)
	}
	to = fmt.Sprintf(to, quoted)
	present := quoted + ` IS NOT NULL`
	switch {
	case kind == "bytea":
		present = `octet_length(` + quoted + `) > 0`
	case table == "messages" && column == "role", column == "outcome", column == "state", column == "status",
		column == "origin",
		column == "valve", column == "trigger_kind", table == "seals" && column == "kind":
		to = otherWord[table+"."+column]
		if to == "" {
			t.Fatalf("%s.%s: which other word?", table, column)
		}
	case table == "markers" && column == "covers_from":
		to, present = `covers_from + 1`, `covers_from < covers_to`
	case column == "pruned_at":
		to, present = `now()`, `pruned_at IS NULL`
		if table == "artifacts" {
			to = `now(), data = NULL`
		}
	case table == "messages" && column == "client_id":
		to, present = `'forged'`, `true`
	}
	var n int
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM `+table+` WHERE `+present).Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n == 0 {
		t.Errorf("no row has a %s.%s: lived must make one", table, column)
		return ""
	}
	return fmt.Sprintf(`UPDATE %s SET %s = %s WHERE ctid = (SELECT ctid FROM %s WHERE %s ORDER BY ctid LIMIT 1)`, table,
		quoted, to, table, present)
}

// otherWord has another valid value for columns whose values a constraint lists.
var otherWord = map[string]string{
	"messages.role": `'system'`, "runs.outcome": `'skipped'`, "run_attempts.outcome": `'reused'`,
	"usage_ledger.state": `'failed'`, "markers.status": `'discarded'`, "markers.origin": `'imported'`,
	"markers.valve": `'previews'`, "runs.trigger_kind": `'overflow'`, "seals.kind": `'prune'`,
}

// snapshotOf copies a table and returns a function that restores it.
func snapshotOf(t testing.TB, db *pgxpool.Pool, table string) func() {
	t.Helper()
	if _, err := db.Exec(t.Context(), `CREATE TABLE kept AS SELECT * FROM `+table); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		var columns string
		if err := db.QueryRow(t.Context(), `SELECT string_agg('"' || column_name || '"', ', ')
			FROM information_schema.columns
			WHERE table_schema = current_schema() AND table_name = $1`, table).Scan(&columns); err != nil {
			t.Fatal(err)
		}
		behind(t, db, `DELETE FROM `+table)
		behind(t, db, `INSERT INTO `+table+` (`+columns+`) OVERRIDING SYSTEM VALUE SELECT `+columns+` FROM kept`)
		if _, err := db.Exec(t.Context(), `DROP TABLE kept`); err != nil {
			t.Fatal(err)
		}
	}
}
