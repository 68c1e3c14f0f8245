// Package testkit is what the tests of several packages need.
package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Shared gives the path of a file or folder of the shared collection of transcripts and cases, which lies
// beside the checkout, or where PRECIS_SHARED says. Without it the test is skipped.
func Shared(t testing.TB, path string) string {
	t.Helper()
	root := os.Getenv("PRECIS_SHARED")
	if root == "" {
		root = filepath.Join(moduleRoot(t), "..", "shared")
	}
	path = filepath.Join(root, filepath.FromSlash(path))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not there; set PRECIS_SHARED to the folder of the shared collection", path)
	}
	return path
}

// moduleRoot is the folder of go.mod above the test's own.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("there is no go.mod above the test's folder")
		}
		dir = parent
	}
}
