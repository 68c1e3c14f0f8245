package compat

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/cli"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/stacktest"
	"precis/internal/testkit/vendorserver"
)

// releases runs a test for each recorded release, with the folder of its files.
func releases(t *testing.T, test func(t *testing.T, dir string)) {
	t.Helper()
	dirs, err := filepath.Glob("testdata/v*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("testdata has no releases: %v", err)
	}
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			test(t, dir)
		})
	}
}

// unzipped reads a compressed file of a release.
func unzipped(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	data, err = io.ReadAll(r)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}

// restored returns the URL of a schema with the recorded database, not migrated. Every table has rows: otherwise a
// migration could lose what none of the tests would miss.
func restored(t *testing.T, dir string) string {
	t.Helper()
	url := stacktest.DatabaseURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if err := conn.PgConn().Exec(t.Context(),
		string(unzipped(t, filepath.Join(dir, "database.sql.gz")))).Close(); err != nil {
		t.Fatalf("restore the recorded database: %v", err)
	}
	rows, err := conn.Query(t.Context(), `SELECT tablename FROM pg_tables WHERE schemaname = current_schema()`)
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) == 0 {
		t.Fatalf("the recorded database has no tables: %v", err)
	}
	for _, table := range tables {
		var filled bool
		if err := conn.QueryRow(t.Context(), "SELECT EXISTS (SELECT FROM "+table+")").Scan(&filled); err != nil ||
			!filled {
			t.Errorf("table %s of the recorded database is empty (%v)", table, err)
		}
	}
	return url
}

// command runs precis on a database and returns what it prints.
func command(t *testing.T, databaseURL string, args ...string) string {
	t.Helper()
	var out, report bytes.Buffer
	code := cli.Run(append([]string{"--database-url", databaseURL}, args...), strings.NewReader(""), &out, &report)
	if code != 0 {
		t.Fatalf("precis %s exits with %d: %s", strings.Join(args, " "), code, report.String())
	}
	return out.String()
}

// swept is what `precis verify --all --json` prints.
type swept struct {
	Conversations, Runs, Checked, Pruned, Failed int
}

// verify fails the test unless every conversation of the database verifies.
func verify(t *testing.T, databaseURL string) swept {
	t.Helper()
	var s swept
	if err := json.Unmarshal([]byte(command(t, databaseURL, "verify", "--all", "--json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.Conversations == 0 || s.Runs == 0 || s.Failed != 0 {
		t.Errorf("verified: %+v", s)
	}
	return s
}

// sameContexts compares the contexts of conversations with those that the release printed. Names are TENANT/ID;
// without any, all that the release recorded are compared.
func sameContexts(t *testing.T, databaseURL, dir string, names ...string) {
	t.Helper()
	recorded := map[string]string{}
	if err := json.Unmarshal(unzipped(t, filepath.Join(dir, "contexts.json.gz")), &recorded); err != nil {
		t.Fatal(err)
	}
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(recorded))
	}
	for _, name := range names {
		tenant, id, _ := strings.Cut(name, "/")
		got := command(t, databaseURL, "context", "--tenant", tenant, id)
		if diff := cmp.Diff(recorded[name], got); diff != "" {
			t.Errorf("the context of %s (-%s +this build):\n%s", name, filepath.Base(dir), diff)
		}
	}
}

// A database of an earlier release is migrated. After that every conversation verifies and has the context that
// it had, a run that no worker had started ends, and the next compaction and its undo work on top.
func TestDatabaseOfARelease(t *testing.T) {
	t.Parallel()
	releases(t, func(t *testing.T, dir string) {
		url := restored(t, dir)
		command(t, url, "migrate")
		before := verify(t, url)
		sameContexts(t, url, dir)

		s := scenario.On(t, url, vendorserver.Script{
			Default: &vendorserver.Answer{Text: "<summary>What was asked, and what was found.</summary>"},
		})
		s.StartWorker()
		requested, _, err := s.Store.Runs.List(t.Context(), scenario.Tenant, runs.Filter{Conversation: "asked"})
		if err != nil || len(requested) != 1 {
			t.Fatalf("conversation asked has %d runs: %v", len(requested), err)
		}
		if run := s.Wait(requested[0]); run.Outcome != precis.OutcomeApplied {
			t.Errorf("run %s of release %s is %s: %s", run.Ref.ID, filepath.Base(dir), run.Outcome, run.Reason)
		}
		for _, id := range []string{"worked", "chat", "responses", "prepared", "native", "imported"} {
			ref := store.ConversationRef{Tenant: scenario.Tenant, ID: id}
			s.Append(ref, scenario.TurnsIn(s.View(ref).Codec.Format(), 6, 1700)...)
			if run := s.Compact(ref, runs.Request{}); run.Outcome != precis.OutcomeApplied {
				t.Errorf("conversation %s: the next run is %s: %s\n%s", id, run.Outcome, run.Reason, s.Attempts(run))
			}
		}
		command(t, url, "undo", "worked")
		if after := verify(t, url); after.Runs <= before.Runs {
			t.Errorf("verified %d runs after the compactions, and %d before", after.Runs, before.Runs)
		}
	})
}

// An export of an earlier release is imported, verifies, and has the context that it had.
func TestExportsOfARelease(t *testing.T) {
	t.Parallel()
	releases(t, func(t *testing.T, dir string) {
		url := stacktest.DatabaseURL(t)
		command(t, url, "migrate")
		for _, name := range []string{"export.jsonl", "export-pruned.jsonl"} {
			file := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(file, unzipped(t, filepath.Join(dir, name+".gz")), 0o600); err != nil {
				t.Fatal(err)
			}
			id := strings.TrimSpace(command(t, url, "import", file))
			sameContexts(t, url, dir, scenario.Tenant+"/"+id)
		}
		if got := verify(t, url); got.Conversations != 2 || got.Pruned == 0 {
			t.Errorf("verified after two imports, one of them pruned: %+v", got)
		}
	})
}
