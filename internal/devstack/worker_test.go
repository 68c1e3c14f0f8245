package devstack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// workerScript behaves as a worker must: ready, and ended with its lifeline unless it has read the line "stay".
const workerScript = `echo ready; read line && [ "$line" = stay ] || exit 0; exec sleep 600`

func startWorker(t *testing.T, opts Options, script, setup string) (WorkerReport, error) {
	t.Helper()
	t.Cleanup(func() {
		if _, err := StopWorker(context.Background(), opts, time.Second); err != nil {
			t.Error(err)
		}
	})
	return StartWorker(t.Context(), opts, WorkerLaunch{Path: "/bin/sh", Args: []string{"-c", script}, Setup: setup})
}

func TestWorkerStartsOnceAndStops(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: t.TempDir()}
	first, err := startWorker(t, opts, workerScript, "a")
	if err != nil {
		t.Fatal(err)
	}
	if !first.Running || first.PID == 0 {
		t.Fatalf("started: %+v", first)
	}
	again, err := startWorker(t, opts, workerScript, "a")
	if err != nil {
		t.Fatal(err)
	}
	if again.PID != first.PID {
		t.Errorf("started again with the same setup: process %d, then %d", first.PID, again.PID)
	}
	other, err := startWorker(t, opts, workerScript, "b")
	if err != nil {
		t.Fatal(err)
	}
	if other.PID == first.PID || !other.Running {
		t.Errorf("another setup did not replace the worker: %+v after %+v", other, first)
	}
	if _, err := startOf(first.PID); err == nil {
		t.Errorf("the worker that was replaced, process %d, still runs", first.PID)
	}
	found, err := FindWorker(opts)
	if err != nil || found != other {
		t.Errorf("found %+v, %v; want %+v", found, err, other)
	}

	stopped, err := StopWorker(t.Context(), opts, time.Second)
	if err != nil || !stopped.Stopped || stopped.Running {
		t.Errorf("stopped: %+v, %v", stopped, err)
	}
	if _, err := startOf(other.PID); err == nil {
		t.Errorf("process %d still runs", other.PID)
	}
	if again, err := StopWorker(t.Context(), opts, time.Second); err != nil || again.Stopped {
		t.Errorf("stopped again: %+v, %v", again, err)
	}
}

func TestWorkerThatDoesNotStart(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: t.TempDir()}
	_, err := startWorker(t, opts, `echo "no such queue" >&2; exit 3`, "")
	if err == nil || !strings.Contains(err.Error(), "no such queue") {
		t.Errorf("the error does not say why: %v", err)
	}
	if found, err := FindWorker(opts); err != nil || found.Running {
		t.Errorf("left behind: %+v, %v", found, err)
	}
}

func TestWorkerEndsWithItsStarterUntilItIsReady(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	pidFile := filepath.Join(opts.Dir, "pid")
	go func() {
		for t.Context().Err() == nil {
			if _, err := os.Stat(pidFile); err == nil {
				cancel()
				return
			}
		}
	}()
	_, err := StartWorker(ctx, opts,
		WorkerLaunch{Path: "/bin/sh", Args: []string{"-c", `: >"$0"; cat >/dev/null`, pidFile}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a worker that never is ready: %v", err)
	}
	if found, err := FindWorker(opts); err != nil || found.Running {
		t.Errorf("left behind: %+v, %v", found, err)
	}
}

func TestRecordWorker(t *testing.T) {
	t.Parallel()
	opts := Options{Dir: t.TempDir()}
	forget, err := RecordWorker(t.Context(), opts, "a", "http://127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	found, err := FindWorker(opts)
	if err != nil || !found.Running || found.PID != os.Getpid() || found.Setup != "a" {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := RecordWorker(t.Context(), opts, "b", ""); !errors.Is(err, ErrWorkerRunning) {
		t.Errorf("a second worker: %v", err)
	}
	if err := forget(); err != nil {
		t.Error(err)
	}
	if found, err := FindWorker(opts); err != nil || found.Running {
		t.Errorf("after it was forgotten: %+v, %v", found, err)
	}
}
