package cli

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/tidwall/gjson"

	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/stacktest"
	"precis/internal/testkit/vendorserver"
)

// update rewrites the golden parts of the scripts: go test ./internal/cli -run TestScripts -update.
var update = flag.Bool("update", false, "rewrite the golden parts of the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"precis": func() {
		os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout,
			os.Stderr))
	}})
}

// world is the environment of a script: database, Temporal, vendor and worker.
type world struct{ system *scenario.System }

type worldKey struct{}

// TestScripts runs every file of testdata/script as a user would type it: each with a database schema and a
// Temporal namespace of its own, and a worker. Files in a script change its world:
//
//	vendor.json  an vendorserver.Script: vendors anthropic and openai then are that scripted server; without it no
//	             vendor has a key
//	noworker     no worker runs
//	nostack      no address is configured: the local stack is the script's own matter
//
// Every script finds talk.json, a recorded request to Anthropic, $DEMO, the session of the demo, and in histories the
// kept histories of workflows.
func TestScripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Files: []string{file}, UpdateScripts: *update, RequireUniqueNames: true,
				Setup: func(env *testscript.Env) error { return setUp(env.T().(testing.TB), env) },
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"clean": cleanCommand, "json": jsonCommand, "grab": grabCommand, "sent": sentCommand,
					"valid": validCommand, "same": sameCommand, "sql": sqlCommand, "narrow": narrowCommand,
				},
			})
		})
	}
}

func setUp(t testing.TB, env *testscript.Env) error {
	here := func(name string) bool {
		_, err := os.Stat(filepath.Join(env.WorkDir, name))
		return err == nil
	}
	if err := os.MkdirAll(filepath.Join(env.WorkDir, "tmp"), 0o777); err != nil {
		return err
	}
	if err := writeTalk(filepath.Join(env.WorkDir, "talk.json")); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(env.WorkDir, "histories"),
		os.DirFS("../../workflows/testdata/histories")); err != nil {
		return err
	}
	env.Setenv("DEMO", absolute(t, "demo/session.jsonl"))
	env.Setenv("PRECIS_DIR", filepath.Join(env.WorkDir, "stack"))
	env.Setenv("PRECIS_HTTP__ADDR", "127.0.0.1:0") // scripts run at once
	env.Setenv("TERM", "dumb")
	if here("nostack") {
		return ownStack(t, env)
	}
	script := vendorserver.Script{}
	if here("vendor.json") {
		text, err := os.ReadFile(filepath.Join(env.WorkDir, "vendor.json"))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &script); err != nil {
			return fmt.Errorf("vendor.json: %w", err)
		}
	}
	system := scenario.New(t, script)
	if here("vendor.json") {
		env.Setenv("PRECIS_VENDORS__ANTHROPIC__BASE_URL", system.Vendor.URL)
		env.Setenv("PRECIS_VENDORS__ANTHROPIC__API_KEY", "test-key")
		env.Setenv("PRECIS_VENDORS__OPENAI__BASE_URL", system.Vendor.OpenAIURL())
		env.Setenv("PRECIS_VENDORS__OPENAI__API_KEY", "test-key")
	} else {
		system.Config.Vendors = config.Defaults().Vendors
	}
	if !here("noworker") {
		system.StartWorker()
	}
	env.Setenv("PRECIS_DATABASE_URL", system.Config.DatabaseURL)
	env.Setenv("PRECIS_TEMPORAL__ADDRESS", system.Config.Temporal.Address)
	env.Setenv("PRECIS_TEMPORAL__NAMESPACE", system.Config.Temporal.Namespace)
	env.Values[worldKey{}] = &world{system}
	return nil
}

// writeTalk writes a recorded request to Anthropic: six turns of about 1,000 tokens each, the last user message
// not answered.
func writeTalk(path string) error {
	messages := strings.Join(scenario.Turns(6, 1000), ",")
	return os.WriteFile(path, []byte(`{"model":"test-agent","max_tokens":1000,"system":"You explain code.",`+
		`"tools":[{"name":"read","input_schema":{"type":"object"}}],"messages":[`+messages+"]}\n"), 0o644)
}

// ownStack gives the script a folder for a local stack within the checkout, with the Temporal server that is
// built already.
func ownStack(t testing.TB, env *testscript.Env) error {
	stacktest.Temporal(t) // builds it, if it is not
	root := absolute(t, "../..")
	parent := filepath.Join(root, ".precis", "tests")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return err
	}
	opts := devstack.Options{Dir: filepath.Join(dir, "stack")}
	t.Cleanup(func() { // also what a script that failed left running
		ctx := context.Background()
		_, worker := devstack.StopWorker(ctx, opts, time.Second)
		report, servers := devstack.Down(ctx, opts)
		errs := []error{worker, servers, os.RemoveAll(dir)}
		for _, s := range report.Services {
			// The cluster is elsewhere where its user cannot reach the checkout.
			if s.Data != "" {
				errs = append(errs, os.RemoveAll(filepath.Dir(s.Data)))
			}
		}
		if err := errors.Join(errs...); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	env.Cd = dir
	env.Setenv("PRECIS_DIR", opts.Dir)
	if err := os.Mkdir(filepath.Join(dir, "stack"), 0o755); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(root, ".precis", "bin"), filepath.Join(dir, "stack", "bin"))
}

func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// The parts of an output that differ from run to run, in the order in which they are replaced.
var unsteady = []struct {
	pattern *regexp.Regexp
	with    string
}{
	// Lines are wrapped at the parts that differ.
	{regexp.MustCompile(`\n {14}(\S)`), " $1"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "HASH"},
	{regexp.MustCompile(`\b[0-9a-f]{12}\b`), "HASH"},
	{regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d-\d\d \d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b\d+(\.\d+)? (ms|s)\b`), "TOOK"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`\bprocess \d+`), "process PID"},
	{regexp.MustCompile(`code \S+, config`), "code VERSION, config"},
	// Numbers that depend on the wording of prompts and summary messages.
	{regexp.MustCompile(`prompt (\S+) [\d.]+`), "prompt $1 VERSION"},
	{regexp.MustCompile(`≈[\d,.]+[kM]?`), "≈N"},
	{regexp.MustCompile(`→[\d,.]+[kM]?`), "→N"},
	{regexp.MustCompile(`[\d,]+ (tokens )?in\b`), "N ${1}in"},
	{regexp.MustCompile(`[\d,]+ chars\b`), "N chars"},
	// The width of columns depends on the parts that differ.
	{regexp.MustCompile(` {2,}`), "  "},
	{regexp.MustCompile(`(?m) +$`), ""},
	{regexp.MustCompile(`[─═]{3,}`), "───"},
}

var uuidForm = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// cleanCommand: clean FILE OUT writes the file, with what differs from run to run replaced: ids by ID1, ID2… in
// the order in which they come.
func cleanCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: clean FILE OUT")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), ts.Getenv("WORK"), "$WORK")
	seen := map[string]string{}
	text = uuidForm.ReplaceAllStringFunc(text, func(id string) string {
		if seen[id] == "" {
			seen[id] = fmt.Sprintf("ID%d", len(seen)+1)
		}
		return seen[id]
	})
	for _, u := range unsteady {
		text = u.pattern.ReplaceAllString(text, u.with)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text), 0o644))
}

// narrowCommand: narrow FILE fails where a line is wider than a terminal of 80 chars.
func narrowCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: narrow FILE")
	}
	for line := range strings.Lines(ts.ReadFile(args[0])) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > term.LineWidth {
			ts.Fatalf("%d chars: %s", n, line)
		}
	}
}

// jsonCommand: json FILE PATH VALUE compares a value, in gjson's syntax; "!" means that it must differ.
func jsonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: json FILE PATH VALUE")
	}
	text := ts.ReadFile(args[0])
	if !gjson.Valid(text) {
		ts.Fatalf("%s is not JSON:\n%s", args[0], text)
	}
	if got := gjson.Get(text, args[1]).String(); (got == args[2]) == neg {
		ts.Fatalf("%s of %s is %q, want %q (negated: %v)", args[1], args[0], got, args[2], neg)
	}
}

// grabCommand: grab NAME FILE PATTERN sets a variable to the first group of the pattern.
func grabCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: grab NAME FILE PATTERN")
	}
	m := regexp.MustCompile(args[2]).FindStringSubmatch(ts.ReadFile(args[1]))
	if len(m) < 2 {
		ts.Fatalf("nothing in %s matches %s", args[1], args[2])
	}
	ts.Setenv(args[0], m[1])
}

// sentCommand: sent N waits until the vendor has had N requests; sent N PATTERN also looks for the pattern in
// the N-th.
func sentCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: sent N [PATTERN]")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	vendor := ts.Value(worldKey{}).(*world).system.Vendor
	if n == 0 {
		if got := len(vendor.Requests()); got != 0 {
			ts.Fatalf("%d requests were sent", got)
		}
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	request, err := vendor.WaitForRequest(ctx, n)
	ts.Check(err)
	if len(args) == 2 && !regexp.MustCompile(args[1]).MatchString(request.Text) {
		ts.Fatalf("request %d does not match %s:\n%s", n, args[1], request.Text)
	}
}

// validCommand: valid anthropic|openai FILE checks a request as its vendor would.
func validCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: valid anthropic|openai FILE")
	}
	check := vendorserver.ValidateAnthropic
	if args[0] == "openai" {
		check = vendorserver.ValidateOpenAI
	}
	ts.Check(check([]byte(ts.ReadFile(args[1]))))
}

// sameCommand: same FILE1 FILE2 LINE... checks that the second contains the given lines of the first, unchanged.
func sameCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: same FILE1 FILE2 LINE…")
	}
	lines := strings.Split(ts.ReadFile(args[0]), "\n")
	out := "\n" + ts.ReadFile(args[1])
	for _, arg := range args[2:] {
		n, err := strconv.Atoi(arg)
		ts.Check(err)
		if n < 0 {
			n += len(lines)
		} else {
			n--
		}
		if !strings.Contains(out, "\n"+lines[n]+"\n") {
			ts.Fatalf("line %d of %s is not in %s as it was", n+1, args[0], args[1])
		}
	}
}

// sqlCommand: sql STATEMENT executes a statement in the database of the script.
func sqlCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql STATEMENT")
	}
	conn, err := pgx.Connect(context.Background(), ts.Getenv("PRECIS_DATABASE_URL"))
	ts.Check(err)
	_, err = conn.Exec(context.Background(), args[0])
	ts.Check(errors.Join(err, conn.Close(context.Background())))
}
