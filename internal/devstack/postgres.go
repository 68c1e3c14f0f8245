package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// databaseName is the name of the database and of its owner.
	databaseName = "precis"
	// startTimeout is generous: after a crash PostgreSQL replays its log before it answers.
	startTimeout = 2 * time.Minute
	// maxConnections is enough for concurrent test packages, where each test has a pool of its own.
	maxConnections = 300
	// initdbOptions make a cluster whose content does not depend on the machine's locale. The path of the file with the
	// owner's password is appended to them.
	initdbOptions = "-U " + databaseName + " --auth=scram-sha-256 --encoding=UTF8 --no-locale --pwfile="
)

// passwordPath returns the file in a cluster's home with its owner's password, which permits everything in the
// database.
func passwordPath(home string) string { return filepath.Join(home, "password") }

// makePassword writes a new password that only the account and root can read.
func makePassword(home string, as *account) error {
	path := passwordPath(home)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("create a password for PostgreSQL: %w", err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("create a password for PostgreSQL: %w", err)
	}
	_, err = file.WriteString(rand.Text() + "\n")
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("create a password for PostgreSQL: %w", err)
	}
	return as.own(path)
}

// ownerOfDatabase returns the user and password to connect with. Clusters of older versions have no password.
func ownerOfDatabase(home string) (*url.Userinfo, error) {
	text, err := os.ReadFile(passwordPath(home))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return url.User(databaseName), nil
	case err != nil:
		return nil, fmt.Errorf("read the password of PostgreSQL: %w", err)
	}
	return url.UserPassword(databaseName, strings.TrimSpace(string(text))), nil
}

// quietLog keeps what is stored out of PostgreSQL's log: the parameters and the text of a statement that failed, and
// the details of the error, which show the failing row. docs/operations.md has the same settings for other servers.
var quietLog = []string{
	"-c", "log_error_verbosity=terse",
	"-c", "log_min_error_statement=panic",
	"-c", "log_parameter_max_length=0",
	"-c", "log_parameter_max_length_on_error=0",
}

// serverArgs configure PostgreSQL on its command line, so that the cluster's own files stay as initdb made them.
// There is no socket file, because its path is limited to about 100 bytes and loopback serves as well.
func serverArgs(data string, port int, durable bool) []string {
	args := []string{
		"-D", data,
		"-c", "listen_addresses=127.0.0.1",
		"-c", "port=" + strconv.Itoa(port),
		"-c", "unix_socket_directories=",
		"-c", "max_connections=" + strconv.Itoa(maxConnections),
		"-c", "default_toast_compression=lz4",
		"-c", "timezone=UTC",
	}
	args = append(args, quietLog...)
	if !durable {
		args = append(args, "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off")
	}
	return args
}

// postgresEnv returns our environment without variables that would change the server's behavior.
func postgresEnv() []string {
	env := []string{"LC_ALL=C"}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PG") && !strings.HasPrefix(entry, "LC_ALL=") {
			env = append(env, entry)
		}
	}
	return env
}

func databaseURL(port int, owner *url.Userinfo, database string) string {
	where := url.URL{
		Scheme: "postgres", User: owner, Host: loopback(port), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return where.String()
}

// prepareDatabase waits until a new server answers, and creates the database if it is missing.
func prepareDatabase(ctx context.Context, port int, owner *url.Userinfo, server process) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := makeDatabase(ctx, port, owner)
		if err == nil {
			return nil
		}
		// Only a refused connection is worth a retry.
		var refused *pgconn.ConnectError
		if !errors.As(err, &refused) {
			return err
		}
		if !server.running() {
			return errEnded
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("PostgreSQL does not answer on port %d: %w (%w)", port, err, ctx.Err())
		case <-tick.C:
		}
	}
}

// errEnded is returned for a server that ended while it was starting; its log says why.
var errEnded = errors.New("the server ended while it was starting")

func makeDatabase(ctx context.Context, port int, owner *url.Userinfo) error {
	conn, err := pgx.Connect(ctx, databaseURL(port, owner, "postgres"))
	if err != nil {
		return fmt.Errorf("connect to PostgreSQL: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)",
		databaseName).Scan(&exists); err != nil {
		return fmt.Errorf("look for the database %s: %w", databaseName, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+databaseName); err != nil {
		return fmt.Errorf("create the database %s: %w", databaseName, err)
	}
	return nil
}

// pingDatabase connects once.
func pingDatabase(ctx context.Context, databaseURL string) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, databaseURL)
	if err != nil {
		return err // the error names host, user and database, but no password
	}
	return conn.Close(ctx)
}
