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

	"github.com/google/go-cmp/cmp"

	"precis"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/testkit/apitest"
	"precis/internal/testkit/exampletest"
	"precis/internal/testkit/scenario"
)

// clientTimeout is for one client's whole conversation.
const clientTimeout = 90 * time.Second

// clients are the example clients, by the command that runs each.
var clients = map[string]func(t *testing.T) []string{
	"Python":     func(*testing.T) []string { return []string{"python3", "python/agent.py"} },
	"TypeScript": node,
	"Curl":       func(*testing.T) []string { return []string{"bash", "curl/agent.sh"} },
}

// programs are what the clients need on the machine.
var programs = map[string][]string{"Python": {"python3"}, "TypeScript": {"node"}, "Curl": {"bash", "curl", "jq"}}

// node returns the command for agent.ts. Node strips the types itself from version 22.6 on; for an older one they are
// stripped beforehand.
func node(t *testing.T) []string {
	t.Helper()
	version, err := exec.CommandContext(t.Context(), "node", "--version").Output()
	if err != nil {
		t.Fatalf("node --version: %v", err)
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

// TestClients has each client talk to a model whose window is smaller than the configured one: the third message
// overflows the window, the client reports that, and the message is answered after a compaction.
func TestClients(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("and so on ", 500) // about 1500 tokens
	for name, command := range clients {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, program := range programs[name] {
				if _, err := exec.LookPath(program); err != nil {
					t.Fatalf("this test needs %s, which is not installed", program)
				}
			}
			args := command(t)
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
			cmd.Env = append(os.Environ(), "PRECIS_URL="+apitest.Serve(t, sys), "PRECIS_KEY="+key,
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
				t.Errorf("the client printed (-want +got):\n%s", cmp.Diff(want, string(out)))
			}
			runs, _, err := sys.Store.Runs.List(t.Context(), scenario.Tenant,
				runs.Filter{Outcome: precis.OutcomeApplied})
			if err != nil || len(runs) != 1 || runs[0].Kind != "overflow" {
				t.Errorf("%d applied runs, %v: %+v", len(runs), err, runs)
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
