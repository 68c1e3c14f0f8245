package devstack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	workerFile = "worker.json"
	workerLog  = "worker.log"
	// workerReady is the line that a worker writes to its standard output when it serves.
	workerReady = "ready"
)

// ErrWorkerRunning is returned by RecordWorker when another process is the stack's worker.
var ErrWorkerRunning = errors.New("the local stack already has a worker")

// worker is the record of the process of precis that serves a persistent stack. Like the servers, the process is
// identified by its number and start time.
type worker struct {
	process
	Setup string `json:"setup,omitempty"`
	Log   string `json:"log,omitempty"`
	API   string `json:"api,omitempty"`
}

// WorkerReport describes the worker of a persistent stack.
type WorkerReport struct {
	// Running is true while the recorded process runs.
	Running bool `json:"running"`
	PID     int  `json:"pid,omitempty"`
	// Stopped is true if StopWorker ended it.
	Stopped bool   `json:"stopped"`
	Log     string `json:"log,omitempty"`
	// API is the address of the HTTP API that the worker also serves, "" for none.
	API string `json:"api,omitempty"`
	// Setup is the WorkerLaunch.Setup of its start.
	Setup string `json:"-"`
}

func (w worker) report() WorkerReport {
	r := WorkerReport{Running: w.running(), Log: w.Log, Setup: w.Setup}
	if r.Running {
		r.PID, r.API = w.PID, w.API
	}
	return r
}

// WorkerLaunch says how to start the worker of a persistent stack.
type WorkerLaunch struct {
	// Path and Args are the command line. When the worker serves, it writes the line "ready" to its standard output,
	// followed by the address of its API if it has one. It must end when its standard input ends, unless it has read
	// the line "stay" from it.
	Path string
	Args []string
	// Setup distinguishes programs and configurations. A worker with another setup is replaced, unless Fits accepts it.
	Setup string
	Fits  func(setup string) bool
}

// FindWorker reports the worker. It changes nothing.
func FindWorker(opts Options) (WorkerReport, error) {
	opts, err := opts.complete()
	if err != nil {
		return WorkerReport{}, err
	}
	w, err := readWorker(opts.Dir)
	return w.report(), err
}

// StartWorker starts the worker in the background, unless it runs with the same setup, and returns when it serves. The
// worker keeps running when this process has ended; StopWorker ends it. If ctx ends first, nothing is left running.
func StartWorker(ctx context.Context, opts Options, l WorkerLaunch) (WorkerReport, error) {
	opts, unlock, err := opts.lockWorker(ctx)
	if err != nil {
		return WorkerReport{}, err
	}
	defer unlock()
	w, err := readWorker(opts.Dir)
	if err != nil {
		return WorkerReport{}, err
	}
	if w.running() && (w.Setup == l.Setup || l.Fits != nil && l.Fits(w.Setup)) {
		return w.report(), nil
	}
	if err := w.end(ctx, opts); err != nil {
		return WorkerReport{}, err
	}
	err = opts.step("starting the worker", func(func(string)) error {
		w, err = l.start(ctx, opts.Dir)
		return err
	})
	return w.report(), err
}

func (l WorkerLaunch) start(ctx context.Context, dir string) (worker, error) {
	w := worker{Setup: l.Setup, Log: filepath.Join(dir, workerLog)}
	log, err := openLog(w.Log)
	if err != nil {
		return w, err
	}
	defer func() { _ = log.Close() }()
	read, write, err := os.Pipe()
	if err != nil {
		return w, fmt.Errorf("start the worker: %w", err)
	}
	defer func() { _ = read.Close() }()
	// The worker keeps our working directory, because the configuration may contain relative paths.
	c, err := launch{path: l.Path, args: l.Args, stdout: write, stderr: log, tethered: true}.start()
	if err = errors.Join(err, write.Close()); err != nil {
		return w, withLog(fmt.Errorf("start the worker: %w", err), readTail(w.Log))
	}
	w.process = c.process
	if err = w.write(dir); err == nil {
		w.API, err = awaitReady(ctx, read)
	}
	if err == nil {
		err = w.write(dir)
	}
	if err != nil {
		err = withLog(fmt.Errorf("start the worker: %w", err), readTail(w.Log))
		return worker{}, errors.Join(err, c.end(context.WithoutCancel(ctx), stopTimeout))
	}
	return w, c.let()
}

// awaitReady reads the worker's standard output until the worker serves, and returns the address of its API.
func awaitReady(ctx context.Context, output *os.File) (api string, err error) {
	stop := context.AfterFunc(ctx, func() { _ = output.SetReadDeadline(time.Now()) })
	defer stop()
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		if first, rest, _ := strings.Cut(strings.TrimSpace(lines.Text()), " "); first == workerReady {
			return rest, nil
		}
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	return "", errors.New("the worker ended before it was ready")
}

// RecordWorker makes this process the stack's worker, with its HTTP API at the given address, until it ends or forget
// is called. While another worker runs, the error is ErrWorkerRunning.
func RecordWorker(ctx context.Context, opts Options, setup, api string) (forget func() error, err error) {
	opts, unlock, err := opts.lockWorker(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	old, err := readWorker(opts.Dir)
	if err != nil {
		return nil, err
	}
	if old.running() {
		return nil, fmt.Errorf("%w, process %d", ErrWorkerRunning, old.PID)
	}
	self, err := identify(os.Getpid())
	if err != nil {
		return nil, err
	}
	w := worker{process: self, Setup: setup, API: api}
	if err := w.write(opts.Dir); err != nil {
		return nil, err
	}
	return func() error { return os.Remove(filepath.Join(opts.Dir, workerFile)) }, nil
}

// StopWorker ends the recorded worker and no other process: first gently, so that stages can finish, and after timeout
// by a kill.
func StopWorker(ctx context.Context, opts Options, timeout time.Duration) (WorkerReport, error) {
	opts, err := opts.complete()
	if err != nil || !exists(opts.Dir) {
		return WorkerReport{}, err
	}
	opts, unlock, err := opts.lockWorker(ctx)
	if err != nil {
		return WorkerReport{}, err
	}
	defer unlock()
	w, err := readWorker(opts.Dir)
	if err != nil || !w.running() {
		return w.report(), err
	}
	err = w.endWithin(ctx, opts, timeout)
	r := w.report()
	r.Stopped = err == nil
	return r, err
}

// end stops a worker that is replaced at once: the next one continues what it had begun.
func (w worker) end(ctx context.Context, opts Options) error {
	if !w.running() {
		return nil
	}
	return w.endWithin(ctx, opts, stopTimeout)
}

func (w worker) endWithin(ctx context.Context, opts Options, timeout time.Duration) error {
	return opts.step("stopping the worker", func(func(string)) error {
		return w.stop(ctx, timeout, syscall.SIGTERM, syscall.SIGKILL)
	})
}

// lockWorker makes the folder, and keeps other calls about the worker out. It is a lock of its own: a worker
// that ends may want to take the servers down.
func (o Options) lockWorker(ctx context.Context) (Options, func(), error) {
	o, err := o.complete()
	if err != nil {
		return o, nil, err
	}
	if err := makeDir(o.Dir); err != nil {
		return o, nil, err
	}
	unlock, err := lock(ctx, filepath.Join(o.Dir, "worker.lock"), func() {
		if o.Progress != nil {
			o.Progress(Event{What: "waiting for another precis that starts or stops the worker"})
		}
	})
	return o, unlock, err
}

func readWorker(dir string) (worker, error) {
	var w worker
	path := filepath.Join(dir, workerFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &w)
	}
	if err != nil {
		return w, fmt.Errorf("read the record of the worker: %w; if no worker runs, remove %s", err, path)
	}
	return w, nil
}

func (w worker) write(dir string) error {
	text, err := json.MarshalIndent(w, "", "  ")
	if err == nil {
		err = replaceFile(dir, workerFile, text)
	}
	if err != nil {
		return fmt.Errorf("record the worker: %w", err)
	}
	return nil
}
