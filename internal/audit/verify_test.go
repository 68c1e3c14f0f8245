package audit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"precis"
	"precis/internal/audit"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/stacktest"
	"precis/internal/testkit/vendorserver"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(stacktest.Main{M: m}, goleak.IgnoreTopFunction("go.opencensus.io/stats/view.(*worker).start"))
}

// good is a summary as a model writes it.
const good = "<summary>We are looking at the words, and go on with them.</summary>"

// compacted returns a conversation with live state and tools, and the two runs that compacted it.
func compacted(t testing.TB, s *scenario.System) (store.ConversationRef, []runs.Run) {
	t.Helper()
	ref := s.Create(scenario.Conversation{
		Window: 11000, System: []byte(`"You write."`),
		Tools:    []byte(`[{"name":"look","input_schema":{"type":"object"}}]`),
		Messages: append([]string{}, scenario.Turns(6, 1500)...),
	})
	for key, value := range map[string]string{"todo": "- the tests", "plan": "first the words"} {
		if _, err := s.Store.LiveState.Set(t.Context(), ref, key, []byte(value)); err != nil {
			t.Fatal(err)
		}
	}
	first := s.Compact(ref, runs.Request{Focus: "the words"})
	s.Append(ref, scenario.User("look at it"), scenario.Call("c1", "I look."),
		scenario.Result("c1", scenario.Distinct("line", 500)), scenario.Assistant("I have looked."))
	s.Append(ref, scenario.Turns(3, 800)...)
	if _, err := s.Store.LiveState.Set(t.Context(), ref, "todo", []byte("- the other tests")); err != nil {
		t.Fatal(err)
	}
	second := s.Compact(ref, runs.Request{})
	for _, run := range []runs.Run{first, second} {
		if run.Outcome != precis.OutcomeApplied || run.Facts.Digest {
			t.Fatalf("%s %s %s\n%s", run.Outcome, run.ErrorKind, run.Reason, s.Attempts(run))
		}
	}
	return ref, []runs.Run{first, second}
}

func newSystem(t testing.TB) *scenario.System {
	t.Helper()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: good}})
	s.StartWorker()
	return s
}

// report formats a report for a failed test.
func report(r audit.Report) string {
	var b strings.Builder
	for _, c := range r.Checks {
		fmt.Fprintf(&b, "%-10s %-8s %s\n", c.Name, c.State, c.Detail)
		for _, f := range c.List {
			fmt.Fprintf(&b, "           %s %s %s %s: %s\n", f.State, f.Table, f.Key, f.Column, f.Detail)
		}
	}
	return b.String()
}

func verified(t testing.TB, s *scenario.System, run runs.Run) audit.Report {
	t.Helper()
	r, err := audit.VerifyRun(t.Context(), s.Store, run.Ref)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func database(t testing.TB, s *scenario.System) *pgxpool.Pool {
	t.Helper()
	db, err := pgxpool.New(t.Context(), s.Config.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// Unchanged records verify, also after another run, an undo and more messages.
func TestRunsVerify(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := compacted(t, s)
	check := func(when string) {
		t.Helper()
		for _, run := range runs {
			r := verified(t, s, run)
			if !r.OK || r.Pruned || len(r.Checks) != 7 {
				t.Errorf("%s, run %s:\n%s", when, run.Ref.ID, report(r))
			}
		}
	}
	check("at once")
	t.Log(report(verified(t, s, runs[1])))
	if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	s.Append(ref, scenario.User("and now?"), scenario.Assistant("now this"))
	if _, err := s.Store.LiveState.Set(t.Context(), ref, "plan", []byte("another")); err != nil {
		t.Fatal(err)
	}
	window := 90000
	model := "another-agent"
	if _, err := s.Store.Changes.Update(t.Context(), ref,
		conversations.Patch{Window: &window, Model: &model}); err != nil {
		t.Fatal(err)
	}
	check("after an undo and a change of the model")
	whole, err := audit.VerifyConversation(t.Context(), s.Store, ref)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range whole.Checks {
		if c.State != audit.OK {
			t.Errorf("%+v", c)
		}
	}
}

// A timeline whose end was cut off is found even if the conversation's counters were changed to match: the last seal
// has the length.
func TestTruncatedTimelineIsFound(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := worked(t, s)
	if r := verified(t, s, runs[1]); !r.OK {
		t.Fatal(report(r))
	}
	_, err := database(t, s).Exec(t.Context(), `WITH c AS (SELECT cid FROM conversations WHERE id = $1),
		kept AS (SELECT cid, seq, chain FROM events WHERE cid = (SELECT cid FROM c) ORDER BY seq LIMIT 1),
		gone AS (DELETE FROM events USING kept WHERE events.cid = kept.cid AND events.seq > kept.seq)
		UPDATE conversations SET event_seq = kept.seq, event_chain = kept.chain FROM kept WHERE conversations.cid = kept.cid`, ref.ID)
	if err != nil {
		t.Fatal(err)
	}
	if r := verified(t, s, runs[1]); r.OK || !strings.Contains(report(r), "missing events") {
		t.Error(report(r))
	}
}

// flip is an SQL expression for a bytea column with one bit changed.
const flip = `set_byte(%s, octet_length(%[1]s) - 2, get_byte(%[1]s, octet_length(%[1]s) - 2) # 1)`

// tamperings are changes to the tables past the store, with the check that finds each one. $1 is the run.
var tamperings = []struct {
	name, check string
	state       audit.State
	names, sql  string
}{
	{
		"a byte of a covered message", audit.CheckMessages, audit.Tampered, "messages 3, native",
		`UPDATE messages SET native = ` + fmt.Sprintf(flip, "native") + ` WHERE seq = 3`,
	},
	{
		"a missing message", audit.CheckMessages, audit.Missing, "messages 4",
		`DELETE FROM messages WHERE seq = 4`,
	},
	{
		"the last message missing", audit.CheckMessages, audit.Missing, "messages",
		`DELETE FROM messages WHERE seq = (SELECT max(seq) FROM messages)`,
	},
	{
		"the role of a message", audit.CheckMessages, audit.Tampered, "messages 2, role",
		`UPDATE messages SET role = 'user' WHERE seq = 2`,
	},
	{
		"the time of a message", audit.CheckMessages, audit.Tampered, "messages 2",
		`UPDATE messages SET created_at = created_at - interval '1 day' WHERE seq = 2`,
	},
	{
		"the tokens of a message", audit.CheckMessages, audit.Tampered, "messages 5, tokens",
		`UPDATE messages SET tokens = tokens + 1 WHERE seq = 5`,
	},
	{
		"the outcome of the run", audit.CheckRecords, audit.Tampered, "runs $1, summarizer",
		`UPDATE runs SET summarizer = 'digest' WHERE id = $1`,
	},
	{
		"what the run covers", audit.CheckCovered, audit.Tampered, "runs $1, covered_chain",
		`UPDATE runs SET covered_chain = sha256(covered_chain) WHERE id = $1`,
	},
	{
		"what the marker covers", audit.CheckCovered, audit.Tampered, "markers",
		`UPDATE markers SET covered_chain = sha256(covered_chain) WHERE run = $1`,
	},
	{
		"an attempt's error", audit.CheckRecords, audit.Tampered, "run_attempts",
		`UPDATE run_attempts SET error_kind = 'auth' WHERE run = $1 AND stage = 'summarise'`,
	},
	{
		"a missing attempt", audit.CheckRecords, audit.Missing, "run_attempts",
		`DELETE FROM run_attempts WHERE run = $1 AND stage = 'slim'`,
	},
	{
		"an added attempt", audit.CheckRecords, audit.Tampered, "run_attempts",
		`INSERT INTO run_attempts (run, stage, call, attempt, outcome) VALUES ($1, 'slim', 99, 1, 'ok')`,
	},
	{
		"a stage's result", audit.CheckRecords, audit.Tampered, "stage_results",
		`UPDATE stage_results SET result = result || '\x20' WHERE run = $1 AND stage = 'slim'`,
	},
	{
		"the tokens of a model call", audit.CheckRecords, audit.Tampered, "usage_ledger",
		`UPDATE usage_ledger SET output_tokens = 1 WHERE run = $1`,
	},
	{
		"a missing model call", audit.CheckRecords, audit.Missing, "usage_ledger",
		`DELETE FROM usage_ledger WHERE run = $1`,
	},
	{
		"the tokens of the marker", audit.CheckRecords, audit.Tampered, "markers",
		`UPDATE markers SET tokens_after = 1 WHERE run = $1`,
	},
	{
		"another summary", audit.CheckSummary, audit.Differs, "summary",
		`UPDATE markers SET summary_sha256 = (SELECT context_sha256 FROM runs WHERE id = $1) WHERE run = $1`,
	},
	{"another draft", audit.CheckSummary, audit.Tampered, "markers", `UPDATE markers SET draft = ` +
		`jsonb_set(draft, '{summary}', to_jsonb(encode(context_sha256, 'hex'))) FROM runs r WHERE r.id = ` +
		`markers.run AND run = $1`},
	{
		"a byte of the context", audit.CheckArtifacts, audit.Tampered, "artifacts",
		`UPDATE artifacts SET data = ` + fmt.Sprintf(flip, "data") +
			` WHERE sha256 = (SELECT context_sha256 FROM runs WHERE id = $1)`,
	},
	{
		"another context", audit.CheckContext, audit.Differs, "in message 1 at byte",
		`UPDATE runs SET context_sha256 = (SELECT context_sha256 FROM runs WHERE id <> $1) WHERE id = $1`,
	},
	{
		"a missing answer", audit.CheckArtifacts, audit.Missing, "artifacts",
		`DELETE FROM artifacts WHERE kind = 'answer'`,
	},
	{
		"an answer marked as pruned", audit.CheckArtifacts, audit.Tampered, "artifacts",
		`UPDATE artifacts SET data = NULL, pruned_at = now() WHERE kind = 'answer'`,
	},
	{
		"a message marked as pruned", audit.CheckMessages, audit.Tampered, "messages 1, pruned_at",
		`UPDATE messages SET pruned_at = now() WHERE seq = 1`,
	},
	{
		"the live state", audit.CheckRecords, audit.Tampered, "enrichments",
		`UPDATE enrichments SET value = 'x' WHERE key = 'plan'`,
	},
	{
		"the system prompt", audit.CheckRecords, audit.Tampered, "conversations",
		`UPDATE conversations SET system = '"You do not write."'`,
	},
	{
		"which marker is active", audit.CheckRecords, audit.Tampered, "conversations",
		`UPDATE conversations SET active_marker = NULL`,
	},
	{
		"the timeline", audit.CheckTimeline, audit.Tampered, "events",
		`UPDATE events SET kind = 'warning' WHERE seq = 1`,
	},
	{
		"the end of the timeline", audit.CheckTimeline, audit.Missing, "events",
		`DELETE FROM events WHERE seq = (SELECT max(seq) FROM events)`,
	},
	{
		"a sealed record", audit.CheckRecords, audit.Tampered, "seals",
		`UPDATE seals SET record = record || '\x20' WHERE n = 2`,
	},
	{
		"the last sealed record", audit.CheckRecords, audit.Missing, "seals",
		`DELETE FROM seals WHERE n = (SELECT max(n) FROM seals)`,
	},
	{
		"the owner of an artifact", audit.CheckArtifacts, audit.Missing, "artifact_links",
		`DELETE FROM artifact_links WHERE sha256 = (SELECT context_sha256 FROM runs WHERE id = $1)`,
	},
}

// A change to any table past the store is found by a check, which names the table.
func TestTamperingIsFound(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	_, runs := compacted(t, s)
	db := database(t, s)
	keep(t, db)
	run := runs[1]
	for _, tt := range tamperings {
		t.Run(tt.name, func(t *testing.T) {
			defer restore(t, db)
			tamper(t, db, tt.sql, run.Ref.ID)
			r := verified(t, s, run)
			names := strings.ReplaceAll(tt.names, "$1", run.Ref.ID)
			if r.OK || !found(r, tt.check, tt.state, names) {
				t.Errorf("want %s %s naming %q, got\n%s", tt.check, tt.state, names, report(r))
			}
		})
	}
	if r := verified(t, s, run); !r.OK {
		t.Errorf("after all changes were reverted:\n%s", report(r))
	}
}

// tamper changes rows past the store. $1 is the run, if the statement has it.
func tamper(t *testing.T, db *pgxpool.Pool, sql, run string) {
	t.Helper()
	var args []any
	if strings.Contains(sql, "$1") {
		args = []any{run}
	}
	behind(t, db, func(ctx context.Context, tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, sql, args...)
		if err == nil && tag.RowsAffected() == 0 {
			err = errors.New("the statement changes no row")
		}
		return err
	})
}

// found reports whether a check ended with the state, and its detail or one of its findings has the text names.
func found(r audit.Report, check string, state audit.State, names string) bool {
	for _, c := range r.Checks {
		if c.Name != check {
			continue
		}
		text := c.Detail
		for _, f := range c.List {
			text += fmt.Sprintf("\n%s %s, %s", f.Table, f.Key, f.Column)
		}
		return c.State == state && strings.Contains(text, names)
	}
	return false
}

// evidence are the tables that a test changes and restores.
var evidence = []string{
	"artifact_links", "artifacts", "conversations", "enrichments", "events", "markers", "messages", "run_attempts",
	"runs", "seals", "stage_results", "usage_ledger",
}

// behind changes rows past the store, with all triggers and foreign keys off.
func behind(t testing.TB, db *pgxpool.Pool, do func(context.Context, pgx.Tx) error) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SET LOCAL session_replication_role = replica`); err != nil {
			return err
		}
		return do(t.Context(), tx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// restore replaces the rows of the evidence tables by the copies that keep made.
func restore(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	behind(t, db, func(ctx context.Context, tx pgx.Tx) error {
		for _, table := range evidence {
			if _, err := tx.Exec(ctx, `DELETE FROM `+table); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `INSERT INTO `+table+` OVERRIDING SYSTEM VALUE SELECT * FROM kept_`+
				table); err != nil {
				return err
			}
		}
		return nil
	})
}

// aside calls do and then restores the evidence tables.
func aside(t testing.TB, db *pgxpool.Pool, do func()) {
	t.Helper()
	keep(t, db)
	do()
	restore(t, db)
	for _, table := range evidence {
		if _, err := db.Exec(t.Context(), `DROP TABLE kept_`+table); err != nil {
			t.Fatal(err)
		}
	}
}

// keep copies the evidence tables.
func keep(t testing.TB, db *pgxpool.Pool) {
	t.Helper()
	for _, table := range evidence {
		if _, err := db.Exec(t.Context(), `CREATE TABLE kept_`+table+` AS SELECT * FROM `+table); err != nil {
			t.Fatal(err)
		}
	}
}
