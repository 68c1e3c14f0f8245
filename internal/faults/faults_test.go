package faults

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"precis/internal/testkit/stacktest"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// parallelPlays is the number of cases that are played at the same time. They mostly wait for servers.
const parallelPlays = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", parallelPlays); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(stacktest.Main{M: m}.Run())
}

// allFaults are the cases, decoded.
func allFaults(t testing.TB) []fault {
	t.Helper()
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	var all []fault
	for _, c := range cases {
		f, err := decodeFault(c.JSON)
		if err != nil {
			t.Fatalf("%s: %v", c.Kind, err)
		}
		f.Kind = c.Kind
		all = append(all, f)
	}
	return all
}

// playsOf returns the plays of a case: one for each variant, format and digest policy. A case in which no model
// writes a summary is played without a digest, where the run fails, and with one.
func playsOf(f fault) []*play {
	h := checks[f.Name]
	policies := []pipeline.DigestPolicy{""}
	if h.fails {
		policies = []pipeline.DigestPolicy{pipeline.DigestNever, h.digest}
	}
	forms := formsOf(f)
	switch {
	case h.format != "":
		forms = []transcript.Format{h.format}
	case !h.forms:
		forms = forms[:1]
	}
	var out []*play
	for _, form := range forms {
		for variant := range f.variants() {
			for _, policy := range policies {
				out = append(out, &play{fault: f, how: h, format: form, variant: variant, policy: policy})
			}
		}
	}
	return out
}

// TestFaults plays every case through the HTTP API.
func TestFaults(t *testing.T) {
	t.Parallel()
	var plays []*play
	var vendors []*vendor
	for _, f := range allFaults(t) {
		for _, p := range playsOf(f) {
			p.vendor = p.newVendor(t, len(vendors))
			plays, vendors = append(plays, p), append(vendors, p.vendor)
		}
	}
	shared := newSystem(t, vendors...)
	for _, p := range plays {
		t.Run(p.fault.Kind+"/"+p.fault.Name+"/"+p.name(), func(t *testing.T) {
			t.Parallel()
			p.t, p.sys = t, shared
			if p.how.restarts {
				p.sys = newSystem(t, vendors...)
			}
			p.run()
			p.how.check(t, p)
		})
	}
}

// TestEveryCaseIsChecked compares the cases with the checks: each has one that says what it proves, and a kind whose
// rule docs/faults.md names.
func TestEveryCaseIsChecked(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, f := range allFaults(t) {
		if known[f.Name] {
			t.Errorf("two cases are named %q", f.Name)
		}
		known[f.Name] = true
		if c, ok := checks[f.Name]; !ok || c.check == nil || c.says == "" {
			t.Errorf("case %q has no check, or the check does not say what it proves", f.Name)
		}
		if _, ok := kinds[f.Kind]; !ok {
			t.Errorf("case %q is of kind %q, which has no rule in kinds", f.Name, f.Kind)
		}
	}
	for name := range checks {
		if !known[name] {
			t.Errorf("there is a check for %q, and no such case", name)
		}
	}
}

// TestCasesPlayedElsewhere checks that the tests exist which the table names for cases that are not played here.
func TestCasesPlayedElsewhere(t *testing.T) {
	t.Parallel()
	for _, e := range elsewhere {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(e.dir), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			code, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || strings.Contains(string(code), "func "+e.test+"(")
		}
		if !found {
			t.Errorf("case %q is left to %s in %s, which does not exist", e.name, e.test, e.dir)
		}
	}
}
