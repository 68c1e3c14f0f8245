package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"precis/internal/cli/fail"
	"precis/internal/service"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// servedBy runs precis commands with the environment of a system.
type servedBy struct {
	t   *testing.T
	env []string
}

func commands(t *testing.T, sys *scenario.System, env ...string) servedBy {
	t.Helper()
	all := append(os.Environ(),
		"PRECIS_DATABASE_URL="+sys.Config.DatabaseURL, "PRECIS_TEMPORAL__ADDRESS="+sys.Config.Temporal.Address,
		"PRECIS_TEMPORAL__NAMESPACE="+sys.Config.Temporal.Namespace, "PRECIS_HTTP__ADDR=127.0.0.1:0", "TERM=dumb")
	return servedBy{t, append(all, env...)}
}

// run returns the output of a command and its exit code.
func (s servedBy) run(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	var out, err bytes.Buffer
	cmd := exec.CommandContext(s.t.Context(), "precis", args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = s.env, s.t.TempDir(), &out, &err
	if e := cmd.Run(); e != nil && !errors.As(e, new(*exec.ExitError)) {
		s.t.Fatal(e)
	}
	return out.String(), err.String(), cmd.ProcessState.ExitCode()
}

// serve starts `precis serve` and returns its address. It stops it at the end as an operator would.
func (s servedBy) serve() (url string, stop func() int) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "precis", "serve")
	var log bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stderr = s.env, s.t.TempDir(), &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		_ = cmd.Wait()
		s.t.Fatalf("precis serve printed no address: %s", log.String())
	}
	return lines.Text(), func() int {
		s.t.Helper()
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			s.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			s.t.Errorf("precis serve ended with %v\n%s", err, log.String())
		}
		return cmd.ProcessState.ExitCode()
	}
}

func fetch(t *testing.T, method, url, key, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestServe(t *testing.T) {
	t.Parallel()
	sys := scenario.New(t, vendorserver.Script{})
	sys.StartWorker()
	p := commands(t, sys)
	url, stop := p.serve()
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("address %q", url)
	}
	for end := time.Now().Add(20 * time.Second); ; {
		status, text := fetch(t, "GET", url+"/readyz", "", "")
		if status == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatal(text)
		}
	}
	if out, errs, code := p.run("ready", url); code != fail.ExitDone || out != "ready\n" {
		t.Errorf("ready: %d %s %s", code, out, errs)
	}
	if status, text := fetch(t, "POST", url+"/v1/conversations", "",
		`{"id":"c","format":"anthropic","model":{"vendor":"anthropic","name":"m"}}`); status != 201 {
		t.Errorf("%d %s", status, text)
	}
	if status, text := fetch(t, "GET", url+"/metrics", "", ""); status != 200 ||
		!strings.Contains(text, "http_server_request_duration_seconds") {
		t.Errorf("%d %.300s", status, text)
	}
	if code := stop(); code != fail.ExitDone {
		t.Errorf("exit code %d", code)
	}
	if out, errs, code := p.run("context", "c", "--json"); code != fail.ExitDone {
		t.Errorf("the other commands do not find the conversation: %d %s %s", code, out, errs)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	sys := scenario.New(t, vendorserver.Script{})
	p := commands(t, sys)
	url, _ := p.serve() // without a worker
	if out, errs, code := p.run("ready", url+"/"); code != fail.ExitFailed || out != "not_ready\n" ||
		!strings.Contains(errs, "no worker polls task queue") {
		t.Errorf("without a worker: %d %s %s", code, out, errs)
	}
	if _, errs, code := p.run("ready", "http://127.0.0.1:1"); code != fail.ExitUnreachable ||
		!strings.Contains(errs, "does not answer") {
		t.Errorf("no server: %d %s", code, errs)
	}
	if _, errs, code := p.run("ready", "::"); code != fail.ExitUsage {
		t.Errorf("no URL: %d %s", code, errs)
	}
	if _, errs, code := p.run("ready", sys.Vendor.URL); code != fail.ExitUnreachable ||
		!strings.Contains(errs, "not as precis does") {
		t.Errorf("another server: %d %s", code, errs)
	}
	for addr, want := range map[string]string{
		"127.0.0.1:8700": "http://127.0.0.1:8700", "0.0.0.0:80": "http://127.0.0.1:80", ":80": "http://127.0.0.1:80",
		"[::]:80":            "http://127.0.0.1:80",
		"precis.internal:80": "http://precis.internal:80",
	} {
		if got := ownURL(addr); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}

// An API that other machines can reach needs keys, and a key acts for its tenant until it is revoked.
func TestServeWithKeys(t *testing.T) {
	t.Parallel()
	sys := scenario.New(t, vendorserver.Script{})
	p := commands(t, sys, "PRECIS_HTTP__ADDR=0.0.0.0:0")
	if _, errs, code := p.run("serve"); code != fail.ExitUsage || !strings.Contains(errs, "there is no API key") ||
		!strings.Contains(errs, "precis keys create") {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if _, errs, code := p.run("keys", "list"); code != fail.ExitDone || !strings.Contains(errs, "no keys") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	out, errs, code := p.run("keys", "create", "--tenant", "acme", "--name", "production")
	key := strings.TrimSpace(out)
	if code != fail.ExitDone || !strings.HasPrefix(key, "pk_") || strings.Contains(key, "\n") ||
		!strings.Contains(errs, "not shown again") {
		t.Fatalf("exit code %d: %q %s", code, out, errs)
	}
	var trusted service.APIKey
	if out, errs, code = p.run("keys", "create", "--tenant", "acme", "--trusted", "--json"); code != fail.ExitDone ||
		json.Unmarshal([]byte(out), &trusted) != nil || !trusted.Trusted || trusted.Key == "" {
		t.Errorf("exit code %d: %s %s", code, out, errs)
	}
	if out, _, code = p.run("keys", "list", "--tenant", "acme"); code != fail.ExitDone ||
		!strings.Contains(out, "production") || strings.Contains(out, key) || strings.Count(out, "works") != 2 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if _, errs, code = p.run("keys", "create", "--tenant", "a/b"); code != fail.ExitUsage ||
		!strings.Contains(errs, "slash") {
		t.Errorf("exit code %d: %s", code, errs)
	}

	url, stop := p.serve()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	url = "http://127.0.0.1:" + port
	list := func(key string) int {
		status, _ := fetch(t, "GET", url+"/v1/conversations", key, "")
		return status
	}
	if list("") != 401 || list("wrong") != 401 || list(key) != 200 || list(trusted.Key) != 200 {
		t.Errorf("statuses %d %d %d %d", list(""), list("wrong"), list(key), list(trusted.Key))
	}
	if status, text := fetch(t, "POST", url+"/v1/conversations", key,
		`{"id":"c","format":"anthropic","model":{"vendor":"anthropic","name":"m"}}`); status != 201 {
		t.Errorf("%d %s", status, text)
	}
	if _, _, code := p.run("context", "c"); code == fail.ExitDone {
		t.Error("the conversation is the default tenant's")
	}
	if _, errs, code := p.run("context", "c", "--tenant", "acme"); code != fail.ExitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
	// The revocation takes effect immediately, without a restart, and only the own tenant can revoke a key.
	var id string
	for _, k := range must(sys.Store.Keys.List(t.Context(), "acme")) {
		if k.Name == "production" {
			id = k.ID
		}
	}
	if _, errs, code := p.run("keys", "revoke", id); code != fail.ExitFailed || !strings.Contains(errs, "has no key") {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := p.run("keys", "revoke", id, "--tenant", "acme"); code != fail.ExitDone {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if list(key) != 401 || list(trusted.Key) != 200 {
		t.Errorf("after the revocation: %d %d", list(key), list(trusted.Key))
	}
	stop()
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestServeWhereItCannot(t *testing.T) {
	t.Parallel()
	sys := scenario.New(t, vendorserver.Script{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if _, errs, code := commands(t, sys, "PRECIS_HTTP__ADDR="+l.Addr().String()).run("serve"); code != fail.ExitUsage ||
		!strings.Contains(errs, "http.addr") || !strings.Contains(errs, "in use") {
		t.Errorf("a port in use: exit code %d: %s", code, errs)
	}
	if _, errs, code := commands(t, sys,
		"PRECIS_DATABASE_URL=postgres://precis@127.0.0.1:1/precis").run("serve"); code != fail.ExitUnreachable ||
		!strings.Contains(errs, "PostgreSQL is not reachable") {
		t.Errorf("no database: exit code %d: %s", code, errs)
	}
	// Temporal may come later.
	url, stop := commands(t, sys, "PRECIS_TEMPORAL__ADDRESS=127.0.0.1:1").serve()
	if status, text := fetch(t, "GET", url+"/readyz", "", ""); status != 503 ||
		!strings.Contains(text, "temporal.address") {
		t.Errorf("%d %s", status, text)
	}
	if status, _ := fetch(t, "GET", url+"/healthz", "", ""); status != 200 {
		t.Errorf("status %d", status)
	}
	stop()
}
