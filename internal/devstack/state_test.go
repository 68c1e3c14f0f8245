package devstack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestState(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if st, err := readState(dir); err != nil || st != (state{}) {
		t.Errorf("without a file: %+v, %v", st, err)
	}
	want := state{Postgres: service{
		process: process{PID: 1, Started: "then"}, Address: "a:1", URL: "u", Data: "d",
		Log: "l",
	}}
	for range 2 { // new, and over an old one
		if err := want.write(dir); err != nil {
			t.Fatal(err)
		}
	}
	if st, err := readState(dir); err != nil || st != want {
		t.Errorf("read %+v, %v", st, err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("there are %v, %v", names, err)
	}
	path := filepath.Join(dir, stateFile)
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("damaged: %v", err)
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := lock(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := lock(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("while it is held: %v", err)
	}
	waited := false
	unlockAgain, err := lock(t.Context(), path, func() {
		waited = true
		unlock()
	})
	if err != nil || !waited {
		t.Fatalf("after it was let go: %v", err)
	}
	unlockAgain()
}
