package faults

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
)

var update = flag.Bool("update", false, "write docs/faults.md instead of comparing it")

const (
	tablePath = "../../docs/faults.md"
	tableHead = `<!-- Written by: go test ./internal/faults -run TestTable -update -->

# Fault cases

A fault case is a failure that was seen in other systems, played against this one: as calls of the HTTP API on a real
server, with a worker, Temporal and PostgreSQL. Only the vendor is scripted. The cases are JSON files in
` + "`internal/faults/cases`, one for each kind of fault; the tests of that package check" + ` what this page says.

After every operation of every case the following holds as well:

1. The vendor would accept the context: every result follows its call, and every call has its result.
2. The user's last message is in it byte for byte, and no message is in it more often than it was sent.
3. The system prompt is first and unchanged.
4. The stored transcript is what was sent.
5. A run that applied nothing left the context unchanged.

At the end, every request to the vendor was valid for its API and is in the usage ledger of its run.

`
	// tableWidth is the length of a line, in characters.
	tableWidth = 120
)

// TestTable keeps docs/faults.md equal to what the cases and their checks say.
func TestTable(t *testing.T) {
	t.Parallel()
	want := table(allFaults(t))
	if *update {
		if err := os.WriteFile(tablePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(tablePath)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/faults.md is out of date, run this test with -update (-want +got):\n%s", diff)
	}
	for kind, r := range kinds {
		for _, dir := range r.where {
			if info, err := os.Stat("../../" + dir); err != nil || !info.IsDir() {
				t.Errorf("the rule of kind %q is in package %s, which does not exist", kind, dir)
			}
		}
	}
}

// table writes the document.
func table(all []fault) string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		r := kinds[kind]
		fmt.Fprintf(&b, "## %s\n\n", kind)
		wrap(&b, "", fmt.Sprintf("%s (`%s`)", r.says, strings.Join(r.where, "`, `")))
		b.WriteString("\n")
		for _, f := range all {
			if f.Kind == kind {
				h := checks[f.Name]
				wrap(&b, "- ", strings.TrimSpace(fmt.Sprintf("**%s:** %s %s", sentence(f.Name), h.says, h.note)))
				wrap(&b, "  ", fmt.Sprintf("Played in %s.", played(f)))
			}
		}
		for _, e := range elsewhere {
			if e.kind == kind {
				wrap(&b, "- ", fmt.Sprintf("**%s:** %s", sentence(e.name), e.says))
				wrap(&b, "  ", fmt.Sprintf("A process is killed, by `%s` in `%s`.", e.test, e.dir))
			}
		}
		b.WriteString("\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// sentence writes a text with a capital letter.
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// wrap writes a paragraph in lines of at most tableWidth, the first behind a prefix and the others indented by it.
func wrap(b *strings.Builder, prefix, text string) {
	line := prefix
	for _, word := range strings.Fields(text) {
		if len([]rune(line))+1+len([]rune(word)) > tableWidth {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", len(prefix))
		}
		if strings.TrimSpace(line) != "" && !strings.HasSuffix(line, " ") {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// played says in which ways a case is played.
func played(f fault) string {
	var forms, digests []string
	var p *play
	for _, p = range playsOf(f) {
		if s := string(p.format); !slices.Contains(forms, s) {
			forms = append(forms, s)
		}
		if s := policyName(p.policy); !slices.Contains(digests, s) {
			digests = append(digests, s)
		}
	}
	out := "format " + strings.Join(forms, " and ")
	if n := f.variants(); n > 1 {
		out += fmt.Sprintf(", %d variants", n)
	}
	if len(digests) > 1 {
		out += ", digest " + strings.Join(digests, " and ")
	}
	out += ", summarized by " + p.who()
	if p.how.restarts {
		out += "; the worker is stopped and started"
	}
	return out
}

func policyName(p pipeline.DigestPolicy) string {
	if p == "" {
		return string(pipeline.DigestWhenNeeded)
	}
	return string(p)
}

// who names the summarizers of a play.
func (p *play) who() string {
	c := &play{fault: p.fault, how: p.how, vendor: &vendor{}}
	var names []string
	for _, s := range c.summarizers(p.fault.Settings.SummarizerWindow, firstModel) {
		switch s := s.(type) {
		case string:
			names = append(names, strings.TrimPrefix(s, "/"))
		case map[string]any:
			names = append(names, strings.TrimPrefix(fmt.Sprint(s["model"]), "/"))
		}
	}
	for i, name := range names {
		names[i] = map[string]string{
			"self": "the agent's model", firstModel: "another model", secondModel: "another model",
		}[name]
	}
	return strings.Join(names, ", then ")
}
