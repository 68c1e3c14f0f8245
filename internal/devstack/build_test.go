package devstack

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestHashSource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	hash := func() string {
		t.Helper()
		sum, err := hashSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	if _, err := hashSource(dir); err == nil {
		t.Error("a folder without a module has a hash")
	}
	write("go.mod", "module m")
	write("go.sum", "")
	write("main.go", "package main")
	first := hash()
	write("main_test.go", "package main")
	write("README.md", "words")
	if hash() != first {
		t.Error("it changes with what is not built")
	}
	write("main.go", "package main\n")
	second := hash()
	write("go.sum", "more")
	if third := hash(); first == second || second == third {
		t.Error("it does not change with what is built")
	}
}

func TestCompileReportsErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":  "module m\n\ngo 1.26\n",
		"main.go": "package main\n\nfunc main() { undefined() }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	err := compile(t.Context(), dir, filepath.Join(dir, "out"), func(string) {})
	if !errors.Is(err, ErrNoTemporal) || !strings.Contains(err.Error(), "undefined: undefined") {
		t.Errorf("got %v", err)
	}
}

// Not parallel: it changes PATH and the working directory.
func TestBuildWithoutAToolOrASource(t *testing.T) {
	t.Run("NoGo", func(t *testing.T) {
		t.Setenv("PATH", "/nowhere")
		_, err := buildTemporal(t.Context(), Options{Dir: t.TempDir()})
		if !errors.Is(err, ErrNoTemporal) || !strings.Contains(err.Error(), "install Go") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("NoCheckout", func(t *testing.T) {
		t.Chdir(t.TempDir())
		_, err := buildTemporal(t.Context(), Options{Dir: t.TempDir()})
		if !errors.Is(err, ErrNoTemporal) || !strings.Contains(err.Error(), "PRECIS_TEMPORAL__ADDRESS") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("DefaultDir", func(t *testing.T) {
		root, ok := checkout()
		if !ok {
			t.Fatal("the tests do not run in a checkout")
		}
		if dir, err := stackDir(""); err != nil || dir != filepath.Join(root, ".precis") {
			t.Errorf("in the checkout: %s, %v", dir, err)
		}
		t.Chdir("temporal") // a module of its own
		if again, _ := checkout(); again != root {
			t.Errorf("in the nested module: %s", again)
		}
		home := t.TempDir()
		t.Setenv("HOME", home)
		t.Chdir(t.TempDir())
		if dir, err := stackDir(""); err != nil || dir != filepath.Join(home, ".precis") {
			t.Errorf("elsewhere: %s, %v", dir, err)
		}
		if dir, err := stackDir("x"); err != nil || !filepath.IsAbs(dir) || filepath.Base(dir) != "x" {
			t.Errorf("named: %s, %v", dir, err)
		}
	})
}
