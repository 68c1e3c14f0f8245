package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Not parallel: it replaces PATH and the folders that are searched.
func TestFindPostgres(t *testing.T) {
	// install makes a folder with programs that report a version.
	install := func(t *testing.T, version string) string {
		t.Helper()
		bin := filepath.Join(t.TempDir(), "bin")
		if err := os.Mkdir(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		script := fmt.Sprintf("#!/bin/sh\necho 'postgres (PostgreSQL) %s (Somewhere 1)'\n", version)
		for _, name := range []string{"postgres", "initdb"} {
			if err := os.WriteFile(filepath.Join(bin, name), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		return bin
	}
	setup := func(t *testing.T, path string, folders ...string) {
		t.Helper()
		t.Setenv("PATH", path)
		before := postgresFolders
		t.Cleanup(func() { postgresFolders = before })
		postgresFolders = folders
	}

	t.Run("TakesTheNewest", func(t *testing.T) {
		setup(t, "/nowhere", install(t, "9.6.24"), install(t, "15.18"), install(t, "18beta1"), install(t, "17.2"))
		found, err := findPostgres(t.Context(), 0)
		if err != nil || found.major != 18 || found.version != "18beta1" {
			t.Errorf("found %+v, %v", found, err)
		}
	})
	t.Run("PrefersTheOneOnPath", func(t *testing.T) {
		setup(t, install(t, "15.1"), install(t, "17.2"))
		found, err := findPostgres(t.Context(), 0)
		if err != nil || found.major != 15 {
			t.Errorf("found %+v, %v", found, err)
		}
	})
	t.Run("PassesOverAPathThatIsTooOld", func(t *testing.T) {
		setup(t, install(t, "13.1"), install(t, "17.2"))
		found, err := findPostgres(t.Context(), 0)
		if err != nil || found.major != 17 {
			t.Errorf("found %+v, %v", found, err)
		}
	})
	t.Run("TakesTheVersionOfTheCluster", func(t *testing.T) {
		setup(t, install(t, "17.1"), install(t, "15.1"), install(t, "16.1"))
		found, err := findPostgres(t.Context(), 15)
		if err != nil || found.major != 15 {
			t.Errorf("found %+v, %v", found, err)
		}
		if _, err := findPostgres(t.Context(), 14); !errors.Is(err, ErrNoPostgres) ||
			!strings.Contains(err.Error(), "PostgreSQL 14") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("SaysWhatToInstall", func(t *testing.T) {
		setup(t, "/nowhere")
		_, err := findPostgres(t.Context(), 0)
		if !errors.Is(err, ErrNoPostgres) {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{"apt install postgresql", "brew install", "PRECIS_DATABASE_URL"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	})
	t.Run("SaysWhyWhatItFoundWillNotDo", func(t *testing.T) {
		old, odd := install(t, "9.6.24"), install(t, "unknown")
		setup(t, "/nowhere", old, odd)
		_, err := findPostgres(t.Context(), 0)
		if err == nil || !strings.Contains(err.Error(), "9.6.24") || !strings.Contains(err.Error(), odd) {
			t.Errorf("got %v", err)
		}
	})
}
