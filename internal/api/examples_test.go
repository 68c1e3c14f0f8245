package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"precis/internal/telemetry"
	"precis/internal/testkit/vendorserver"
)

const apiPage = "../../docs/api.md"

// example is a shell block of the page, and the answer that is shown behind it, "" for none.
type example struct {
	line          int
	script, shows string
}

var fence = regexp.MustCompile("(?ms)^```(sh|json)\n(.*?)^```$")

func examplesOf(page string) []example {
	var out []example
	for _, m := range fence.FindAllStringSubmatchIndex(page, -1) {
		kind, text := page[m[2]:m[3]], page[m[4]:m[5]]
		switch {
		case kind == "sh":
			out = append(out, example{line: 1 + strings.Count(page[:m[0]], "\n"), script: text})
		case len(out) > 0 && out[len(out)-1].shows == "": // others are files that the page shows
			out[len(out)-1].shows = text
		}
	}
	return out
}

// The examples of docs/api.md, run in their order by a shell: none fails, and each answer has what the page shows.
func TestThePageOfTheAPI(t *testing.T) {
	t.Parallel()
	runPage(t, apiPage, 15)
}

// So are those of docs/memory.md.
func TestThePageOfTheMemory(t *testing.T) {
	t.Parallel()
	runPage(t, "../../docs/memory.md", 6)
}

// And those of docs/integrate.md, but for the programs, which are the examples'.
func TestThePageOfIntegration(t *testing.T) {
	t.Parallel()
	runPage(t, "../../docs/integrate.md", 5)
}

func runPage(t *testing.T, path string, least int) {
	t.Helper()
	for _, program := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("this test needs %s, which is not installed", program)
		}
	}
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Stop(context.Background()) })
	b := newBench(t, options{
		tel: tel, worker: true,
		script: vendorserver.Script{Default: &vendorserver.Answer{Text: summaryText}},
	})
	within(t, 20*time.Second, "ready", func() bool { return b.send("GET", "/readyz", "").status == http.StatusOK })
	for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
		if m[1] == "json" && !json.Valid([]byte(m[2])) {
			t.Errorf("no JSON: %s", m[2])
		}
	}
	examples := examplesOf(string(page))
	if len(examples) < least {
		t.Fatalf("only %d examples were found", len(examples))
	}
	var script strings.Builder
	script.WriteString("set -eu -o pipefail\n")
	for i, e := range examples {
		fmt.Fprintf(&script, "echo; echo '=== example %d'\n%s", i, e.script)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "PRECIS_URL="+b.url)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs.String())
	}
	for i, part := range strings.Split(string(out), "\n=== example ")[1:] {
		_, text, _ := strings.Cut(part, "\n")
		e := examples[i]
		if strings.Contains(text, `"type":"/docs#`) && !strings.Contains(e.shows, `"type": "/docs#`) {
			t.Errorf("line %d fails: %s", e.line, text)
		}
		if e.shows == "" {
			continue
		}
		var want, got any
		if err := json.Unmarshal([]byte(e.shows), &want); err != nil {
			t.Errorf("the answer shown behind line %d: %v", e.line, err)
			continue
		}
		lines := strings.Split(strings.TrimSpace(text), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
			t.Errorf("line %d: %v: %s", e.line, err, text)
			continue
		}
		for _, lack := range lacks(want, got, "") {
			t.Errorf("line %d: %s\n%s", e.line, lack, text)
		}
	}
}

// lacks lists what an answer has not of what is shown: fields, and the values of those that say how it went.
func lacks(want, got any, path string) []string {
	switch want := want.(type) {
	case map[string]any:
		have, ok := got.(map[string]any)
		if !ok {
			return []string{fmt.Sprintf("%s is %v", path, got)}
		}
		var out []string
		for key, value := range want {
			inner, ok := have[key]
			if !ok {
				out = append(out, fmt.Sprintf("there is no %s.%s", path, key))
				continue
			}
			out = append(out, lacks(value, inner, path+"."+key)...)
		}
		return out
	case []any:
		have, ok := got.([]any)
		if !ok || len(want) > 0 && len(have) == 0 {
			return []string{fmt.Sprintf("%s is %v", path, got)}
		}
		if len(want) == 0 {
			return nil
		}
		return lacks(want[0], have[0], path+"[0]")
	}
	key := path[strings.LastIndex(path, ".")+1:]
	if slices.Contains([]string{"outcome", "code", "status", "fired", "as", "matched", "first_seq", "ok", "location"},
		key) && fmt.Sprint(want) != fmt.Sprint(got) {
		return []string{fmt.Sprintf("%s is %v, not %v", path, got, want)}
	}
	return nil
}

// TestThePageIsComplete checks that docs/api.md names every operation, problem code and event.
func TestThePageIsComplete(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	words := strings.Join(strings.Fields(page), " ")
	for _, c := range codes {
		if entry := fmt.Sprintf("- `%s` (%d): %s", c.code, c.status, c.about); !strings.Contains(words, entry) {
			t.Errorf("docs/api.md has no entry %s", entry)
		}
	}
	b := newBench(t, options{})
	for path := range b.server.api.OpenAPI().Paths {
		short := strings.Replace(path, "/v1/conversations/{id}", "…/{id}", 1)
		if !strings.Contains(page, path) && !strings.Contains(page, short) {
			t.Errorf("nothing is said of %s", path)
		}
	}
	registry := b.server.api.OpenAPI().Components.Schemas
	for _, kind := range registry.SchemaFromRef(refPrefix + "Event").Properties["kind"].Enum {
		if !strings.Contains(page, fmt.Sprintf("`%v`", kind)) {
			t.Errorf("nothing is said of event %v", kind)
		}
	}
}
