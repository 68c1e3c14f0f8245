package faults

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"precis/internal/testkit"
	"precis/internal/testkit/stacktest"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// playsAtOnce is how many cases are played at a time: they wait for servers most of the time, not for a processor.
const playsAtOnce = "12"

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", playsAtOnce); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	os.Exit(stacktest.Main{M: m}.Run())
}

func collection(t testing.TB) []fault {
	t.Helper()
	all, err := readFaults(testkit.Shared(t, "cases/faults.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// playsOf are the ways in which a case is played: each variant, in the format that it is written in, and where its
// shape is what it is about in every other one too. Where it wants a compaction that fails, that is what happens with
// the digest switched off; it is played again with the digest, which lands, flagged, and all else holds.
func playsOf(f fault) []*play {
	h := cases[f.ID]
	if h.skip != "" {
		return nil
	}
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
		for variant := range max(1, len(f.Variants), len(f.Config.Variants)) {
			for _, policy := range policies {
				out = append(out, &play{fault: f, how: h, format: form, variant: variant, policy: policy})
			}
		}
	}
	return out
}

// TestFaults plays every case of the collection through the HTTP API.
func TestFaults(t *testing.T) {
	t.Parallel()
	var plays []*play
	var vendors []*vendor
	for _, f := range collection(t) {
		for _, p := range playsOf(f) {
			p.vendor = p.newVendor(t, len(vendors))
			plays, vendors = append(plays, p), append(vendors, p.vendor)
		}
	}
	shared := newSystem(t, vendors...)
	for _, p := range plays {
		t.Run(p.fault.ID+"/"+p.name(), func(t *testing.T) {
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

// TestEveryCaseIsKnown: no case of the collection goes unplayed in silence, and none is known that it has not.
func TestEveryCaseIsKnown(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, f := range collection(t) {
		ids = append(ids, f.ID)
		h, known := cases[f.ID]
		switch {
		case !known:
			t.Errorf("%s (%s) is neither played nor skipped with a reason", f.ID, f.Title)
		case (h.check == nil) == (h.skip == ""):
			t.Errorf("%s is to be played or skipped, one of the two", f.ID)
		case h.says == "":
			t.Errorf("%s does not say what is checked", f.ID)
		}
		if h.skip != "" {
			coveredBy(t, f.ID, h.skip)
		}
		if _, known := kinds[f.Kind]; !known {
			t.Errorf("%s: nothing is said of the kind %q", f.ID, f.Kind)
		}
	}
	for id := range cases {
		if !slices.Contains(ids, id) {
			t.Errorf("%s is not in the collection", id)
		}
	}
}

// covering is a test elsewhere that a case is left to.
var covering = regexp.MustCompile(`(\S+_test\.go) \((Test\w+)\)`)

// coveredBy checks that the test is there which a reason not to play a case names.
func coveredBy(t *testing.T, id, reason string) {
	t.Helper()
	named := covering.FindStringSubmatch(reason)
	if named == nil {
		t.Errorf("%s is skipped and names no test", id)
		return
	}
	code, err := os.ReadFile("../../" + named[1])
	if err != nil || !strings.Contains(string(code), "func "+named[2]+"(") {
		t.Errorf("%s is left to %s of %s, which is not there (%v)", id, named[2], named[1], err)
	}
}
