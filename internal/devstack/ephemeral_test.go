package devstack

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

func TestEphemeralAnswersAndLeavesNothing(t *testing.T) {
	t.Parallel()
	if _, err := builtBin(); err != nil {
		t.Fatal(err)
	}
	stack := mustUp(t, Options{Ephemeral: true, TemporalNamespace: "mine"})
	processes, scratch := processesOf(stack), stack.scratch

	conn, err := pgx.Connect(t.Context(), stack.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	for setting, want := range map[string]string{
		"server_encoding": "UTF8", "lc_collate": "C", "default_toast_compression": "lz4", "timezone": "UTC",
		"listen_addresses": "127.0.0.1", "fsync": "off", "log_error_verbosity": "terse",
		"log_parameter_max_length_on_error": "0", "log_min_error_statement": "panic",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", setting).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if stack.Namespace != "mine" {
		t.Errorf("namespace is %q", stack.Namespace)
	}
	if err := EnsureNamespace(t.Context(), stack.TemporalAddress, "mine"); err != nil {
		t.Error(err)
	}
	page, err := http.Get(stack.UIURL)
	if err != nil {
		t.Fatal(err)
	}
	_ = page.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if page.StatusCode != http.StatusOK {
		t.Errorf("the web page answers %s", page.Status)
	}

	if err := stack.Close(t.Context()); err != nil {
		t.Error(err)
	}
	mustEnd(t, processes...)
	if exists(scratch) {
		t.Errorf("%s is still there", scratch)
	}
	if err := stack.Close(t.Context()); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

func TestEphemeralDiesWithAKilledOwner(t *testing.T) {
	t.Parallel()
	if _, err := builtBin(); err != nil {
		t.Fatal(err)
	}
	owner, up := startChild(t, "")
	if len(up.Processes) != 3 { // shell, PostgreSQL, Temporal
		t.Fatalf("found %d processes", len(up.Processes))
	}
	if err := owner.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	mustEnd(t, up.Processes...)
	if exists(up.Scratch) {
		t.Errorf("%s is still there", up.Scratch)
	}
}

func TestEphemeralStartsOnlyWhatIsWanted(t *testing.T) {
	t.Parallel()
	stack := mustUp(t, Options{Ephemeral: true, NoTemporal: true})
	if stack.TemporalAddress != "" || stack.Namespace != "" || stack.UIURL != "" || stack.DatabaseURL == "" {
		t.Errorf("got %+v", stack)
	}
	if err := stack.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEphemeralUsesWhatIsConfigured(t *testing.T) {
	t.Parallel()
	own := mustUp(t, Options{Ephemeral: true, NoTemporal: true})
	defer func() { _ = own.Close(context.Background()) }()
	stack := mustUp(t, Options{Ephemeral: true, NoTemporal: true, DatabaseURL: own.DatabaseURL})
	if stack.DatabaseURL != own.DatabaseURL {
		t.Errorf("got %s", stack.DatabaseURL)
	}
	if err := stack.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := pingDatabase(t.Context(), own.DatabaseURL); err != nil {
		t.Errorf("the configured database was ended: %v", err)
	}
}

func TestEphemeralNamesTheConfiguredAddressThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	port, err := freePort(0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Up(t.Context(), Options{
		Ephemeral: true, NoTemporal: true,
		DatabaseURL: "postgres://u:secret@" + loopback(port) + "/d",
	})
	if err == nil || !strings.Contains(err.Error(), "PRECIS_DATABASE_URL") ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	_, err = Up(t.Context(), Options{Ephemeral: true, NoDatabase: true, TemporalAddress: loopback(port)})
	if err == nil || !strings.Contains(err.Error(), "PRECIS_TEMPORAL__ADDRESS") {
		t.Errorf("got %v", err)
	}
}

func TestEphemeralLeavesNothingWhenTheStartIsInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var events []Event
	_, err := Up(ctx, Options{Ephemeral: true, NoTemporal: true, Progress: func(e Event) {
		events = append(events, e)
		cancel()
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if len(events) == 0 || !strings.HasPrefix(events[0].What, "starting PostgreSQL") {
		t.Errorf("events %v", events)
	}
}

func TestKeeper(t *testing.T) {
	t.Parallel()
	setup := func(t *testing.T) (scratch string, installed installation, as *account, port int) {
		t.Helper()
		installed, err := findPostgres(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if as, err = postgresAccount(); err != nil {
			t.Fatal(err)
		}
		if scratch, err = scratchDir(as); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = os.RemoveAll(scratch) })
		if port, err = freePort(0); err != nil {
			t.Fatal(err)
		}
		return scratch, installed, as, port
	}

	t.Run("LeavesTheLogOfAServerThatFails", func(t *testing.T) {
		t.Parallel()
		scratch, installed, as, port := setup(t)
		installed.bin = scratch // without initdb
		c, err := startKeeper(scratch, installed, as, port)
		if err != nil {
			t.Fatal(err)
		}
		mustEnd(t, c.process)
		if text := readTail(filepath.Join(scratch, "postgres.log")); !strings.Contains(text, "initdb") {
			t.Errorf("the log says %q", text)
		}
		if err := c.end(t.Context(), time.Second); err != nil {
			t.Error(err)
		}
	})

	t.Run("EndsTheServerOfAnOwnerThatEndedBeforeItStarts", func(t *testing.T) {
		t.Parallel()
		scratch, installed, as, port := setup(t)
		c, err := startKeeper(scratch, installed, as, port)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.end(t.Context(), time.Minute); err != nil {
			t.Error(err)
		}
		if exists(scratch) {
			t.Errorf("%s is still there; the log says %s", scratch, readTail(filepath.Join(scratch, "postgres.log")))
		}
		if !isFree(port) {
			t.Error("the server still listens")
		}
	})
}
