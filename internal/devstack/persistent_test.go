package devstack

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestPersistentStaysAndComesBackAsItWas(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t), TemporalNamespace: "mine"}
	if _, err := Attach(t.Context(), opts); !errors.Is(err, ErrNotRunning) {
		t.Errorf("before it was started: %v", err)
	}
	stack := mustUp(t, opts)
	execute(t, stack.DatabaseURL, "CREATE TABLE kept ()")
	mustHavePassword(t, opts, stack.DatabaseURL)
	if err := stack.Close(t.Context()); err != nil {
		t.Error(err)
	}
	attached, err := Attach(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, attached, stack)
	before := mustState(t, opts)
	mustEqual(t, mustUp(t, opts), stack)
	mustEqual(t, mustState(t, opts), before)
	report, err := Status(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Services {
		if !s.Running || !s.Answers || s.PID == 0 || !exists(s.Log) {
			t.Errorf("status is %+v", s)
		}
	}

	report, err = Down(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range report.Services {
		if !s.Stopped || s.Running {
			t.Errorf("after Down: %+v", s)
		}
	}
	mustEnd(t, before.Postgres.process, before.Temporal.process)
	if _, err := Attach(t.Context(), opts); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after it was stopped: %v", err)
	}
	report, err = Down(t.Context(), opts)
	if err != nil || report.Services[0].Stopped {
		t.Errorf("a second Down: %+v, %v", report, err)
	}

	mustEqual(t, mustUp(t, opts), stack) // the same ports
	execute(t, stack.DatabaseURL, "DROP TABLE kept")
}

func TestPersistentRestartsWhatWasKilled(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t)}
	stack := mustUp(t, opts)
	execute(t, stack.DatabaseURL, "CREATE TABLE kept ()")
	conn, err := pgx.Connect(t.Context(), stack.DatabaseURL) // has a process of the server at work
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	before := mustState(t, opts)
	kill(t, before.Postgres.process, before.Temporal.process)
	if _, err := Attach(t.Context(), opts); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after the kill: %v", err)
	}
	again := mustUp(t, opts)
	execute(t, again.DatabaseURL, "DROP TABLE kept")
	if after := mustState(t, opts); after.Postgres.process == before.Postgres.process ||
		after.Temporal.process == before.Temporal.process {
		t.Errorf("state is %+v", after)
	}
}

func TestPersistentRestartsOneOfTwo(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t)}
	mustUp(t, opts)
	before := mustState(t, opts)
	kill(t, before.Temporal.process)
	mustUp(t, opts)
	if after := mustState(t, opts); after.Postgres != before.Postgres ||
		after.Temporal.process == before.Temporal.process {
		t.Errorf("state is %+v, was %+v", after, before)
	}
}

func TestPersistentFindsAServerThatIsNotInTheState(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t), NoTemporal: true}
	stack := mustUp(t, opts)
	before := mustState(t, opts)
	if err := os.Remove(filepath.Join(opts.Dir, stateFile)); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, mustUp(t, opts), stack)
	mustEqual(t, mustState(t, opts), before)
}

func TestPersistentIgnoresAPostmasterFileOfAnotherProcess(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t), NoTemporal: true}
	mustUp(t, opts)
	if _, err := Down(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	data := mustState(t, opts).Postgres.Data
	text := strconv.Itoa(os.Getpid()) + "\n" + data + "\n1\n1\n\n127.0.0.1\n"
	if err := os.WriteFile(filepath.Join(data, "postmaster.pid"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	mustUp(t, opts)
}

func TestPersistentIsStartedOnceByConcurrentCalls(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t)}
	stacks := make([]*Stack, 4)
	var wg sync.WaitGroup
	for i := range stacks {
		wg.Go(func() {
			var err error
			if stacks[i], err = Up(t.Context(), opts); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range stacks[1:] {
		mustEqual(t, s, stacks[0])
	}
}

func TestPersistentOutlivesAKilledStarter(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t)}
	starter, up := startChild(t, opts.Dir)
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait()
	stack, err := Attach(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	mustEqual(t, stack, up.Stack)
}

func TestPersistentEndsNoProcessWithAReusedNumber(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t), NoTemporal: true}
	mustUp(t, opts)
	if _, err := Down(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	other := exec.Command("sleep", "600")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Process.Kill(); _ = other.Wait() })
	st := mustState(t, opts)
	st.Postgres.process = process{PID: other.Process.Pid, Started: "yesterday"}
	st.Temporal.process = st.Postgres.process
	if err := st.write(opts.Dir); err != nil {
		t.Fatal(err)
	}
	if report, err := Down(t.Context(), opts); err != nil || report.Services[0].Stopped ||
		report.Services[1].Stopped {
		t.Errorf("%+v, %v", report, err)
	}
	if err := other.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process was ended: %v", err)
	}
	mustUp(t, opts)
}

func TestPersistentReplacesATemporalThatHangs(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t), NoDatabase: true}
	mustUp(t, opts)
	st := mustState(t, opts)
	port, err := freePort(0)
	if err != nil {
		t.Fatal(err)
	}
	hanging := st.Temporal.process
	st.Temporal.Address = loopback(port) // where nobody answers
	if err := st.write(opts.Dir); err != nil {
		t.Fatal(err)
	}
	mustUp(t, opts)
	mustEnd(t, hanging)
}

func TestPersistentKeepsTheClusterWhereItsUserCanReach(t *testing.T) {
	t.Parallel()
	as, err := postgresAccount()
	if err != nil {
		t.Fatal(err)
	}
	if as == nil {
		return // a normal user runs PostgreSQL in a folder that it can reach
	}
	opts := Options{Dir: filepath.Join(emptyDir(t), "private", "stack"), NoTemporal: true}
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(opts.Dir), 0o700); err != nil {
		t.Fatal(err)
	}
	stack := mustUp(t, opts)
	away := filepath.Dir(mustState(t, opts).Postgres.Data)
	t.Cleanup(func() { _ = os.RemoveAll(away) })
	if filepath.Dir(away) != "/var/tmp" {
		t.Errorf("the cluster is in %s", away)
	}
	if _, err := Down(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
	mustEqual(t, mustUp(t, opts), stack)
	if _, err := Down(t.Context(), opts); err != nil {
		t.Fatal(err)
	}
}

func TestPersistentRefusesAClusterOfAMissingVersion(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: emptyDir(t), NoTemporal: true}
	data := filepath.Join(opts.Dir, "postgres", "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "PG_VERSION"), []byte("7\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	as, err := postgresAccount()
	if err != nil {
		t.Fatal(err)
	}
	if err := as.own(filepath.Dir(data)); err != nil {
		t.Fatal(err)
	}
	if _, err := Up(t.Context(), opts); !errors.Is(err, ErrNoPostgres) {
		t.Errorf("got %v", err)
	}
}

func TestDownWithoutAStack(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "none")
	report, err := Down(t.Context(), Options{Dir: dir})
	if err != nil || len(report.Services) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	if exists(dir) {
		t.Error("it made the folder")
	}
}

func execute(t *testing.T, databaseURL, statement string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

func mustState(t *testing.T, opts Options) state {
	t.Helper()
	st, err := readState(opts.Dir)
	if err != nil {
		t.Fatal(err)
	}
	return st
}

func mustEqual[T any](t *testing.T, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(state{}, service{}),
		cmpopts.IgnoreUnexported(Stack{})); diff != "" {
		t.Errorf("(- want, + got):\n%s", diff)
	}
}

func kill(t *testing.T, processes ...process) {
	t.Helper()
	for _, p := range processes {
		if err := p.stop(t.Context(), 10*time.Second, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
}

// mustHavePassword checks that the database needs a password, and that only the current user can read it.
func mustHavePassword(t *testing.T, opts Options, databaseURL string) {
	t.Helper()
	where, err := url.Parse(databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	where.User = url.User(where.User.Username())
	var refused *pgconn.PgError
	if err := pingDatabase(t.Context(), where.String()); !errors.As(err, &refused) &&
		!strings.Contains(fmt.Sprint(err), "password") {
		t.Errorf("without a password: %v", err)
	}
	home := filepath.Dir(mustState(t, opts).Postgres.Data)
	for _, path := range []string{filepath.Join(opts.Dir, stateFile), passwordPath(home)} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s has mode %o", path, mode)
		}
	}
}
