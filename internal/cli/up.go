package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/cli/connect"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/devstack"
)

func (a *app) upCommand() *cobra.Command {
	var detach bool
	cmd := &cobra.Command{
		Use:     "up",
		GroupID: groupStack,
		Short:   "Start the local stack: PostgreSQL, Temporal, a worker and the HTTP API",
		Long: `Starts a private PostgreSQL and a private Temporal with its web page in the stack's folder, brings the
schema up to date, runs a worker and the HTTP API, and prints the addresses. It ends with Ctrl-C; with --detach
everything keeps running in the background until ` + "`precis down`" + `. The data are kept either way. A configured
database (database_url) or Temporal (temporal.address) is used instead of a private one.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if detach {
				return a.upDetached(cmd)
			}
			return a.upHere(cmd)
		},
	}
	cmd.Flags().BoolVar(&detach, "detach", false, "keep running in the background; precis down stops it")
	return cmd
}

// running is the JSON of `precis up`: a local stack with its worker.
type running struct {
	*devstack.Stack
	Worker devstack.WorkerReport `json:"worker"`
}

// upDetached starts everything in the background.
func (a *app) upDetached(cmd *cobra.Command) error {
	up, _, err := a.bringUp(cmd, a.progress(), true)
	if err != nil {
		return err
	}
	return a.printRunning(up)
}

// bringUp starts servers and worker in the background, unless they are running already.
func (a *app) bringUp(cmd *cobra.Command, p *term.Progress, all bool) (running, *session, error) {
	ctx := cmd.Context()
	s, opts, err := a.startServers(cmd, p, all)
	if err != nil {
		return running{}, nil, err
	}
	defer p.Clear()
	// The worker opens its own connections.
	if err := s.Close(ctx); err != nil {
		return running{}, nil, err
	}
	mine, err := setupOf(s.Config)
	if err != nil {
		return running{}, nil, err
	}
	worker, err := startWorker(ctx, cmd, opts, mine)
	if err != nil {
		return running{}, nil, err
	}
	return running{s.Stack, worker}, s, nil
}

// startServers starts the persistent stack and migrates its schema.
func (a *app) startServers(cmd *cobra.Command, p *term.Progress, all bool) (*session, devstack.Options, error) {
	s := &session{}
	var err error
	if s.Config, s.Origins, err = a.config(cmd); err != nil {
		return nil, devstack.Options{}, err
	}
	opts := stackOptions(s.Config)
	opts.Progress = stackProgress(p, all)
	if configured(s.Config) {
		return nil, opts, fail.Usagef(
			"there is nothing to start: database_url and temporal.address are configured; start bin/worker for them")
	}
	stack, err := devstack.Up(cmd.Context(), opts)
	if err != nil {
		return nil, opts, fail.Stack(err)
	}
	s.Use(stack)
	began := time.Now()
	if err := s.OpenStore(cmd.Context()); err != nil {
		return nil, opts, err
	}
	if all {
		opts.Progress(devstack.Event{What: "bringing the schema up to date", Elapsed: time.Since(began), Done: true})
	}
	return s, opts, nil
}

// upHere serves until it is interrupted, and stops what it started.
func (a *app) upHere(cmd *cobra.Command) (err error) {
	ctx := cmd.Context()
	cfg, _, err := a.config(cmd)
	if err != nil {
		return err
	}
	opts := stackOptions(cfg)
	_, notRunning := devstack.Attach(ctx, opts)

	p := a.progress()
	s, opts, err := a.startServers(cmd, p, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.downAgain(ctx, s, opts, notRunning != nil)) }()
	mine, err := setupOf(s.Config)
	if err != nil {
		return err
	}
	h, err := a.openAPI(ctx, s, "precis", s.OpenTemporal)
	if err != nil {
		return err
	}
	defer func() { _ = h.listener.Close() }()
	forget, err := devstack.RecordWorker(ctx, opts, mine.String(), h.url())
	if errors.Is(err, devstack.ErrWorkerRunning) {
		worker, err := devstack.FindWorker(opts)
		if err != nil {
			return err
		}
		a.say("precis: the local stack is up already; `precis down` stops it")
		return a.printRunning(running{s.Stack, worker})
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, forget()) }()

	err = serveAll(ctx, s.WorkerOptions(h.log, h.tel, func() {
		_ = a.printRunning(running{s.Stack, devstack.WorkerReport{Running: true, PID: os.Getpid(), API: h.url()}})
		a.say("precis: serving; Ctrl-C stops it")
	}), h)
	if err == nil {
		a.say("precis: stopping")
	}
	return err
}

// downAgain closes the connections, and stops the servers if this call started them.
func (a *app) downAgain(ctx context.Context, s *session, opts devstack.Options, started bool) error {
	err := s.Close(ctx)
	if !started {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connect.CloseTimeout)
	defer cancel()
	_, down := devstack.Down(ctx, opts)
	return errors.Join(err, down)
}

// printRunning prints the addresses.
func (a *app) printRunning(up running) error {
	if a.json {
		return a.printJSON(up)
	}
	return a.printRows(addressRows(up))
}

func addressRows(up running) term.Table {
	var t term.Table
	t.Row("PostgreSQL", up.DatabaseURL)
	t.Row("Temporal", up.TemporalAddress+", namespace "+up.Namespace)
	if up.UIURL != "" {
		t.Row("Temporal UI", up.UIURL)
	}
	if up.Worker.API != "" {
		t.Row("API", up.Worker.API, up.Worker.API+"/docs")
	}
	worker := "none"
	if up.Worker.Running {
		worker = fmt.Sprintf("process %d", up.Worker.PID)
		if up.Worker.Log != "" {
			worker += ", log " + up.Worker.Log
		}
	}
	t.Row("worker", worker)
	return t
}

// printRows writes a table to standard output.
func (a *app) printRows(t term.Table) error { return fail.Written(t.Write(a.out)) }
