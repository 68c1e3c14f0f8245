package examples_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"precis"
	"precis/internal/store/runs"
	"precis/internal/testkit/apitest"
	"precis/internal/testkit/exampletest"
	"precis/internal/testkit/scenario"
)

// childWorkflow is the folder of the example, a module of its own: what it can import, any program can.
const childWorkflow = "childworkflow"

// maxPackages bounds the packages of other modules that a program gets with the root package. Temporal's SDK is most of
// them; with the vendors' SDKs they would be more than 600.
const maxPackages = 300

// goCommand runs the go command in the example's module and gives what it prints.
func goCommand(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = childWorkflow
	cmd.Env = append(append(os.Environ(), "GOWORK=off"), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go %s: %v\n%s%s", strings.Join(args, " "), err, out, errs.String())
	}
	return string(out)
}

// childWorkflowProgram builds the example, once for all tests.
var childWorkflowProgram = func() func(t *testing.T) string {
	var once sync.Once
	var program string
	return func(t *testing.T) string {
		t.Helper()
		once.Do(func() {
			readSources(t)
			folder, err := os.MkdirTemp("", "childworkflow")
			if err != nil {
				t.Fatal(err)
			}
			program = filepath.Join(folder, "agent")
			goCommand(t, nil, "build", "-o", program, ".")
		})
		return program
	}
}()

// readSources reads the files that the example is built from, so that the test cache notices a change in them.
func readSources(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{
		childWorkflow + "/*", "../*.go", "../go.mod", "../pipeline/*.go",
		"../pipeline/prompts/*",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, f := range files {
			if _, err := os.ReadFile(f); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestChildWorkflowImportsLittle(t *testing.T) {
	t.Parallel()
	readSources(t)
	packages := strings.Fields(goCommand(t, nil, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}",
		"."))
	if len(packages) > maxPackages {
		t.Errorf("the example is built from %d packages of other modules, at most %d are expected", len(packages),
			maxPackages)
	}
	var ours []string
	for _, p := range packages {
		if p == "precis" || strings.HasPrefix(p, "precis/") {
			ours = append(ours, p)
		}
	}
	if diff := cmp.Diff([]string{"precis/pipeline", "precis"}, ours); diff != "" {
		t.Errorf("packages of precis (-want +got):\n%s", diff)
	}
}

// served is a whole system that the example runs against.
type served struct {
	*scenario.System
	env []string
}

// serve starts a system whose model refuses requests of more than window tokens, 0: none.
func serve(t *testing.T, window int) served {
	t.Helper()
	sys := scenario.New(t, exampletest.Script(window))
	sys.StartWorker()
	return served{sys, []string{
		"PRECIS_URL=" + apitest.Serve(t, sys), "PRECIS_TENANT=" + scenario.Tenant,
		"TEMPORAL_ADDRESS=" + sys.Config.Temporal.Address, "TEMPORAL_NAMESPACE=" + sys.Config.Temporal.Namespace,
		"ANTHROPIC_BASE_URL=" + sys.Vendor.URL, "ANTHROPIC_API_KEY=test-key", "MODEL=test-agent",
	}}
}

// talk has the user say lines to the example and gives what it prints.
func (s served) talk(t *testing.T, contextWindow int, lines ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), clientTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, childWorkflowProgram(t))
	cmd.Env = append(append(os.Environ(), s.env...), "CONTEXT_WINDOW="+strconv.Itoa(contextWindow))
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, errs.String())
	}
	return string(out)
}

// run gives the one run of the system, which is expected to be applied.
func (s served) run(t *testing.T) runs.Run {
	t.Helper()
	list, _, err := s.Store.Runs.List(t.Context(), scenario.Tenant, runs.Filter{})
	if err != nil || len(list) != 1 || list[0].Outcome != precis.OutcomeApplied || list[0].Facts.Digest {
		t.Fatalf("one run with a summary by a model is expected: %+v, %v", list, err)
	}
	return list[0]
}

const clientTimeout = 90 * time.Second

// With the context over the limit the agent compacts it before its next answer, as a child of its own workflow.
func TestChildWorkflowCompacts(t *testing.T) {
	t.Parallel()
	s := serve(t, 0)
	long := strings.Repeat("and so on ", 900) // about 2700 tokens
	out := s.talk(t, 6000, "First question "+long, "Second question "+long, "Third question")
	want := regexp.MustCompile(`^Answer to First question\.\nAnswer to Second question\.\n\[compacted: applied, ` +
		`\d+ tokens before, \d+ after\]\nAnswer to Third question\.\n$`)
	if !want.MatchString(out) {
		t.Errorf("printed\n%s", out)
	}
	requests := s.Vendor.Requests()
	if last := requests[len(requests)-1]; !strings.Contains(last.Text, "each was answered") ||
		strings.Contains(last.Text, "First question and so on and so on") {
		t.Errorf("the third answer was requested with %.500s", last.Text)
	}
	run := s.run(t)
	child, err := s.Client.DescribeWorkflow(t.Context(), run.WorkflowID, run.TemporalRunID)
	if err != nil {
		t.Fatal(err)
	}
	parent := child.RawResponse.GetWorkflowExecutionInfo().GetParentExecution().GetWorkflowId()
	if diff := cmp.Diff("agent-"+run.Conversation, parent); diff != "" {
		t.Errorf("the compaction's parent (-want +got):\n%s", diff)
	}
}

// The model refuses a context that precis took for small enough: the agent reports it, compacts and asks again.
func TestChildWorkflowCompactsAfterAnOverflow(t *testing.T) {
	t.Parallel()
	s := serve(t, 3000)
	long := strings.Repeat("and so on ", 600)
	out := s.talk(t, 100_000, "First question "+long, "Second question "+long)
	if !strings.Contains(out, "Answer to Second question.\n[compacted: applied, ") {
		t.Errorf("printed\n%s", out)
	}
	s.run(t)
}

// The example's own tests, which need the API and the model.
func TestChildWorkflowModule(t *testing.T) {
	t.Parallel()
	readSources(t)
	s := serve(t, 0)
	goCommand(t, s.env, "test", "-count=1", ".")
	if n := len(s.Vendor.Requests()); n != 2 {
		t.Errorf("two attempts at a reply made %d model calls, want 2", n)
	}
}
