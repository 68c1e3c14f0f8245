// Package stacktest gives a test a real PostgreSQL and a real Temporal of its own.
//
//	pool := stacktest.Database(t)
//	address, namespace := stacktest.Temporal(t)
//
// The servers are shared by all tests of a process, and by all processes below the command withstack; the
// schema and the namespace belong to the one test. Without withstack the first test that asks starts them, and
// they end with the process, however that ends.
package stacktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"precis/internal/devstack"
)

const (
	// startTimeout has room for building the Temporal server.
	startTimeout = 15 * time.Minute
	// cleanTimeout is for dropping a schema.
	cleanTimeout = 30 * time.Second
	// poolSize is small, since many tests have a pool at a time. Use DatabaseURL for a larger one.
	poolSize = 8
)

// The servers are started apart, so that a test of the database does not wait for Temporal.
var (
	databaseServer = shared{options: devstack.Options{
		DatabaseURL: os.Getenv(devstack.TestDatabaseVariable),
		NoTemporal:  true,
	}}
	temporalServer = shared{options: devstack.Options{
		TemporalAddress: os.Getenv(devstack.TestTemporalVariable), NoDatabase: true,
		NoUI: true,
	}}
)

// shared is a stack that the first test that asks for it starts.
type shared struct {
	options devstack.Options
	once    sync.Once
	stack   *devstack.Stack
	err     error
}

func (s *shared) get(t testing.TB) *devstack.Stack {
	t.Helper()
	s.once.Do(func() { s.stack, s.err = up(s.options) })
	if s.err != nil {
		t.Fatalf("start what the test needs: %v", s.err)
	}
	return s.stack
}

func up(opts devstack.Options) (*devstack.Stack, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	opts.Ephemeral = true
	opts.Progress = devstack.Print(os.Stderr, "stacktest: ")
	return devstack.Up(ctx, opts)
}

// Main ends the shared servers when the tests have run. It is only needed by a TestMain that looks for leaks or
// for processes that were left:
//
//	func TestMain(m *testing.M) { goleak.VerifyTestMain(stacktest.Main{M: m}) }
type Main struct{ M *testing.M }

// Run runs the tests.
func (m Main) Run() int {
	code := m.M.Run()
	for _, s := range []*shared{&databaseServer, &temporalServer} {
		if s.stack == nil {
			continue
		}
		if err := s.stack.Close(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "stacktest:", err)
			code = max(code, 1)
		}
	}
	return code
}

// DatabaseURL returns the URL of a database in which a new, empty schema comes first. It is dropped when the
// test ends. A failed test leaves nothing behind either.
func DatabaseURL(t testing.TB) string {
	t.Helper()
	stack := databaseServer.get(t)
	where, err := url.Parse(stack.DatabaseURL)
	if err != nil {
		t.Fatalf("%s is no URL: %v", devstack.TestDatabaseVariable, err)
	}
	schema := "test_" + strings.ToLower(rand.Text())
	execute(t, stack.DatabaseURL, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { execute(t, stack.DatabaseURL, "DROP SCHEMA "+schema+" CASCADE") })

	query := where.Query()
	// Understood by pgx and by libpq alike, and a space would be not.
	query.Set("options", "-csearch_path="+schema)
	where.RawQuery = query.Encode()
	return where.String()
}

// Database returns a pool on a database in which a new, empty schema comes first. The pool is closed and the
// schema dropped when the test ends; connections must have been given back by then.
func Database(t testing.TB) *pgxpool.Pool {
	t.Helper()
	config, err := pgxpool.ParseConfig(DatabaseURL(t))
	if err != nil {
		t.Fatalf("open a database for tests: %v", err)
	}
	config.MaxConns = poolSize
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatalf("open a database for tests: %v", err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func execute(t testing.TB, databaseURL, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		t.Fatalf("connect to the database for tests: %v", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, statement); err != nil {
		t.Errorf("%s: %v", statement, err)
	}
}

// Temporal returns the address of a Temporal and a new namespace in it, ready for workflows and with the search
// attributes of precis. The namespace stays until the server ends.
func Temporal(t testing.TB) (address, namespace string) {
	t.Helper()
	stack := temporalServer.get(t)
	namespace = "test-" + strings.ToLower(rand.Text())
	ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
	defer cancel()
	if err := devstack.EnsureNamespace(ctx, stack.TemporalAddress, namespace); err != nil {
		t.Fatal(err)
	}
	return stack.TemporalAddress, namespace
}
