// Package clients_test runs the example clients against the real API.
package clients_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/testkit/exampletest"
	"precis/internal/testkit/scenario"
)

// clientTimeout bounds one client's whole talk.
const clientTimeout = 90 * time.Second

// clients are the programs, each as it is run; the first word must be on the machine.
var clients = map[string]func(t *testing.T) []string{
	"Python":     func(*testing.T) []string { return []string{"python3", "python/agent.py"} },
	"TypeScript": node,
	"Curl":       func(*testing.T) []string { return []string{"curl", "curl/agent.sh"} },
}

// node runs agent.ts: by Node's own stripping of types where it has that (22.6 and later), else stripped beforehand.
func node(t *testing.T) []string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		return []string{"node"} // it is not there
	}
	var major, minor int
	if _, err := fmt.Sscanf(string(version), "v%d.%d", &major, &minor); err != nil {
		t.Fatalf("node --version says %q", version)
	}
	switch {
	case major > 23 || major == 23 && minor >= 6 || major == 22 && minor >= 18:
		return []string{"node", "typescript/agent.ts"}
	case major == 23 || major == 22 && minor >= 6:
		return []string{"node", "--experimental-strip-types", "typescript/agent.ts"}
	}
	stripped := filepath.Join(t.TempDir(), "agent.mjs")
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../.ci/tools/go.mod", "esbuild", "--format=esm",
		"--target=es2022",
		"--outfile="+stripped, "typescript/agent.ts")
	cmd.Stderr = &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("strip the types: %v\n%s", err, out.String())
	}
	return []string{"node", stripped}
}

// Each client talks with a model whose window is smaller than precis believes: the third message overflows it, is
// reported, compacted away and answered.
func TestClients(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("and so on ", 500) // about 1500 tokens
	for name, command := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := command(t)
			if _, err := exec.LookPath(args[0]); err != nil {
				t.Skipf("%s is not installed: the example in %s is not run", args[0], name)
			}
			if name == "Curl" {
				if _, err := exec.LookPath("jq"); err != nil {
					t.Skip("jq is not installed: the example in curl is not run")
				}
				args = []string{"bash", args[1]}
			}
			sys := scenario.New(t, exampletest.Script(4000))
			sys.StartWorker()
			// Keys are on, as in production.
			_, key, err := sys.Store.Keys.Create(t.Context(), scenario.Tenant, "example", false)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
			defer cancel()
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Env = append(os.Environ(), "PRECIS_URL="+exampletest.Serve(t, sys), "PRECIS_KEY="+key,
				"ANTHROPIC_BASE_URL="+sys.Vendor.URL,
				"ANTHROPIC_API_KEY=test-key", "MODEL=test-agent")
			cmd.Stdin = strings.NewReader("First question " + long + "\nSecond question " + long +
				"\nThird \"question\" " + long + "\nFourth question\n")
			var errs bytes.Buffer
			cmd.Stderr = &errs
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s%s", err, out, errs.String())
			}
			want := "Answer to First question.\nAnswer to Second question.\nAnswer to Third \"question\".\nAnswer " +
				"to Fourth question.\n"
			if string(out) != want {
				t.Errorf("printed\n%s\nwant\n%s", out, want)
			}
			runs, _, err := sys.Store.Runs.List(t.Context(), scenario.Tenant,
				runs.Filter{Outcome: precis.OutcomeApplied})
			if err != nil || len(runs) != 1 || runs[0].Kind != "overflow" {
				t.Errorf("%d runs took effect, %v: %+v", len(runs), err, runs)
			}
			refused, reported := 0, false
			for _, r := range sys.Vendor.Requests() {
				if !exampletest.AsksForSummary(r) && r.Tokens > 4000 {
					refused++
				}
				reported = reported || !exampletest.AsksForSummary(r) && strings.Contains(r.Text, "each was answered")
			}
			if refused != 1 || !reported {
				t.Errorf("%d requests overflowed, the summary was sent: %t", refused, reported)
			}
			c, err := sys.Store.Conversations.Get(t.Context(),
				store.ConversationRef{Tenant: scenario.Tenant, ID: runs[0].Conversation})
			if err != nil || c.HeadSeq != 8 || c.LearnedWindow == 0 || c.Usage.Tokens == 0 {
				t.Errorf("the conversation has %d messages, window %d, usage %+v, %v", c.HeadSeq, c.LearnedWindow,
					c.Usage, err)
			}
		})
	}
}
