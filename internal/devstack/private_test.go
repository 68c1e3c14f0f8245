package devstack

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// What a failed statement was to store is in no log of the local stack, and nobody else can read its files.
func TestTheStackKeepsWhatItStoresToItself(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t)}
	stack := mustUp(t, opts)
	conn, err := pgx.Connect(t.Context(), stack.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	const marker = "marker-of-a-body-2f1c"
	const table = "CREATE TABLE held (id int PRIMARY KEY, body text NOT NULL CHECK (id > 0))"
	if _, err := conn.Exec(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	for _, attempt := range []struct {
		sql  string
		args []any
	}{
		{"INSERT INTO held VALUES (-1, $1)", []any{marker}},
		{"INSERT INTO held VALUES ($1, $2), ($1, $2)", []any{1, marker}},
		{"INSERT INTO held VALUES (-1, '" + marker + "')", nil},
		{"INSERT INTO held (body) VALUES ($1)", []any{marker}},
	} {
		if _, err := conn.Exec(t.Context(), attempt.sql, attempt.args...); err == nil {
			t.Errorf("%s did not fail", attempt.sql)
		}
	}
	_, err = conn.CopyFrom(t.Context(), pgx.Identifier{"held"}, []string{"id", "body"},
		pgx.CopyFromRows([][]any{{-1, marker}}))
	if err == nil {
		t.Error("the copy did not fail")
	}
	log, err := os.ReadFile(mustState(t, opts).Postgres.Log)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(log), "violates") {
		t.Errorf("the errors are not in the log: %s", log)
	}
	if strings.Contains(string(log), marker) {
		t.Errorf("the body is in the log:\n%s", log)
	}
	mustBePrivate(t, opts.Dir)
}

// mustBePrivate checks the permissions of a stack's files. Those of the cluster's own folder are PostgreSQL's; nobody
// else can enter that. The servers in bin were built before and are linked.
func mustBePrivate(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		mode := info.Mode().Perm()
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
		case info.IsDir() && mode&0o066 != 0:
			t.Errorf("others can look into the folder %s (%v)", path, mode)
		case info.IsDir() && entry.Name() == "data":
			return fs.SkipDir
		case !info.IsDir() && mode&0o077 != 0:
			t.Errorf("others can use the file %s (%v)", path, mode)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
