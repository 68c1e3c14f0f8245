package store_test

import (
	"io/fs"
	"strings"
	"sync"
	"testing"

	"precis/internal/store/schema"
	"precis/internal/testkit/stacktest"
	"precis/migrations"
)

func TestMigrate(t *testing.T) {
	t.Parallel()
	url := stacktest.DatabaseURL(t)

	before, err := schema.Read(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if before.Current != 0 || before.Latest == 0 || before.UpToDate() {
		t.Fatalf("an empty database is at %+v", before)
	}

	// If many processes migrate at once, each file is applied once and none of them fails.
	var mu sync.Mutex
	var lines []string
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			err := schema.Migrate(t.Context(), url, func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	after, err := schema.Read(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	files, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	if !after.UpToDate() || len(lines) != len(files) {
		t.Errorf("at %+v after %d lines: %q", after, len(lines), lines)
	}

	// The tables are in the schema that the URL names, and only there.
	var tables int
	err = raw(t, url).QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()
		AND tablename IN ('conversations', 'messages', 'markers', 'runs', 'goose_db_version')`).Scan(&tables)
	if err != nil {
		t.Fatal(err)
	}
	if tables != 5 {
		t.Errorf("%d of 5 tables are in the schema of the URL", tables)
	}
}

func TestMigrateNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ url, want string }{
		"NoURL":    {"://", "the database URL cannot be read"},
		"NoSchema": {stacktest.DatabaseURL(t) + "&search_path=not_there", "search_path names no schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := schema.Migrate(t.Context(), test.url, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one that says %q", err, test.want)
			}
		})
	}
}

func TestMigrationsAreForwardOnly(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "kept")
	appendTurns(t, s, ref, 1)
	if err := schema.Migrate(t.Context(), url, func(line string) { t.Errorf("migrated again: %s", line) }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Evidence.CheckChain(t.Context(), ref, 0); err != nil {
		t.Error(err)
	}
}
