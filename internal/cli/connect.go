package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"precis/internal/cli/fail"
	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/schema"
	"precis/internal/telemetry"
	"precis/internal/temporalclient"
	"precis/internal/worker"
)

const (
	// dialPatience is how long Temporal may take to answer.
	dialPatience = 10 * time.Second
	// closePatience is for taking a stack of our own down.
	closePatience = 30 * time.Second
)

// session is what a command works with. Close it.
type session struct {
	// own is the configuration; config is the same with the addresses of the stack in it.
	own     config.Config
	config  config.Config
	origins config.Origins
	store   *store.Store
	client  client.Client   // nil where only the store was asked for
	stack   *devstack.Stack // the part of it that is local; nil when all is configured
	// ephemeral says that the database goes with the call.
	ephemeral bool
	// closers end what was opened, the last first.
	closers []func(context.Context) error
}

func (s *session) onClose(f func(context.Context) error) { s.closers = append(s.closers, f) }

// close also works after the command was interrupted.
func (s *session) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closePatience)
	defer cancel()
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i](ctx))
	}
	s.closers = nil
	return errors.Join(errs...)
}

// launcher asks for runs.
func (s *session) launcher() launch.Launcher {
	return launch.Launcher{Store: s.store, Client: s.client, Config: s.config}
}

// configured says that nothing of the stack is a local one.
func configured(c config.Config) bool { return c.DatabaseURL != "" && c.Temporal.Address != "" }

// stackOptions say which local stack is meant, and what is used in its place.
func stackOptions(c config.Config) devstack.Options {
	return devstack.Options{
		Dir: c.Dir, DatabaseURL: c.DatabaseURL, TemporalAddress: c.Temporal.Address,
		TemporalNamespace: c.Temporal.Namespace,
	}
}

// withStore runs a command that needs nothing but the database: the configured one, or that of the local stack
// if it runs.
func (a *app) withStore(cmd *cobra.Command, do func(ctx context.Context, s *session) error) (err error) {
	ctx := cmd.Context()
	s := &session{}
	if s.config, s.origins, err = a.config(cmd); err != nil {
		return err
	}
	if s.config.DatabaseURL == "" {
		opts := stackOptions(s.config)
		opts.NoTemporal = true
		stack, err := devstack.Attach(ctx, opts)
		if err != nil {
			return notRunning(err)
		}
		s.stack, s.config.DatabaseURL = stack, stack.DatabaseURL
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err := s.openStore(ctx); err != nil {
		return err
	}
	return do(ctx, s)
}

// notRunning says what to do when there is no local stack.
func notRunning(err error) error {
	if errors.Is(err, devstack.ErrNotRunning) {
		return fail.Unreachablef(
			"the local stack is not running and no database is configured: start it with `precis " +
				"up`, or set PRECIS_DATABASE_URL")
	}
	return fail.Stack(err)
}

// openStore opens the database. The schema of a local one is brought up to date; of any other it must be.
func (s *session) openStore(ctx context.Context) error {
	if s.stack != nil && s.stack.DatabaseURL == s.config.DatabaseURL &&
		s.origins.Of("database_url").Source == config.SourceDefault {
		if err := schema.Migrate(ctx, s.config.DatabaseURL, nil); err != nil {
			return err
		}
	} else if err := checkSchema(ctx, s.config.DatabaseURL); err != nil {
		return err
	}
	st, err := store.Open(ctx, s.config.DatabaseURL, store.Options{AppName: "precis-cli"})
	if err != nil {
		return err
	}
	s.store = st
	s.onClose(func(context.Context) error { st.Close(); return nil })
	return nil
}

func checkSchema(ctx context.Context, url string) error {
	v, err := schema.Read(ctx, url)
	switch {
	case err != nil:
		return err
	case v.Current < v.Latest:
		return fmt.Errorf("the database's schema is at version %d and this build needs %d: run `precis migrate`",
			v.Current, v.Latest)
	case v.Current > v.Latest:
		return fmt.Errorf("the database's schema is at version %d and this build knows %d: use a newer build of precis",
			v.Current, v.Latest)
	}
	return nil
}

// openTemporal connects to Temporal.
func (s *session) openTemporal(ctx context.Context, log *slog.Logger, tune ...func(*client.Options) error) error {
	ctx, cancel := context.WithTimeout(ctx, dialPatience)
	defer cancel()
	c, err := temporalclient.Dial(ctx, s.config.Temporal, log, tune...)
	if err != nil {
		return fail.Stack(err)
	}
	s.client = c
	s.onClose(func(context.Context) error { c.Close(); return nil })
	return nil
}

// withServed runs a command that starts runs: on the stack that is there, be it configured or local, else on
// one of its own that ends with it: an ephemeral one, or with keep the persistent one. Where no worker serves
// the local stack, this process does.
func (a *app) withServed(cmd *cobra.Command, keep bool, do func(ctx context.Context, s *session) error) (err error) {
	ctx := cmd.Context()
	s := &session{}
	if s.config, s.origins, err = a.config(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	wholly := configured(s.config)
	if !wholly {
		if err := s.localStack(ctx, a, keep); err != nil {
			return err
		}
	}
	if err := s.openStore(ctx); err != nil {
		return err
	}
	log := a.quietLog(s.config, s.origins)
	if err := s.openTemporal(ctx, log); err != nil {
		return err
	}
	if wholly {
		err = s.requireWorker(ctx)
	} else {
		err = s.serveUnlessServed(ctx, a, cmd, log)
	}
	if err != nil {
		return err
	}
	return do(ctx, s)
}

// localStack uses the local stack if it runs, and brings one up otherwise.
func (s *session) localStack(ctx context.Context, a *app, keep bool) error {
	opts := stackOptions(s.config)
	opts.Progress = stackProgress(a.progress(), false)
	stack, giveBack, err := devstack.Borrow(ctx, opts, keep)
	if errors.Is(err, devstack.ErrNotRunning) && !keep {
		opts.Ephemeral, opts.NoUI = true, true
		if stack, err = devstack.Up(ctx, opts); err == nil {
			giveBack, s.ephemeral = stack.Close, s.config.DatabaseURL == ""
		}
	}
	if err != nil {
		return fail.Stack(err)
	}
	s.onClose(giveBack)
	s.use(stack)
	return nil
}

func (s *session) use(stack *devstack.Stack) {
	s.stack, s.own = stack, s.config
	s.config.DatabaseURL = stack.DatabaseURL
	s.config.Temporal.Address, s.config.Temporal.Namespace = stack.TemporalAddress, stack.Namespace
}

// quietLog takes the log of what runs inside of a command: nothing, unless a level was asked for. What went
// wrong in a run is on record.
func (a *app) quietLog(c config.Config, origins config.Origins) *slog.Logger {
	if origins.Of("log.level").Source == config.SourceDefault {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return telemetry.Logger(a.err, c.Log)
}

// serveUnlessServed makes this process the worker, unless one runs for the local stack. One in the background
// that lacks a vendor of this configuration is started anew with it.
func (s *session) serveUnlessServed(ctx context.Context, a *app, cmd *cobra.Command, log *slog.Logger) error {
	opts := stackOptions(s.own)
	w, err := devstack.FindWorker(opts)
	if err != nil {
		return err
	}
	mine, err := setupOf(s.config)
	if err != nil {
		return err
	}
	theirs := parseSetup(w.Setup)
	switch missing := theirs.lacks(mine); {
	case !w.Running:
		return s.serve(ctx, log)
	case theirs.Where != mine.Where:
		// It works on another database: queues of our own keep it from taking what it would not find there.
		own := "-" + rand.Text()
		s.config.Worker.TaskQueue += own
		s.config.Worker.LLMTaskQueue += own
		return s.serve(ctx, log)
	case missing == "":
		return nil
	case w.Log == "":
		a.say("precis: the worker of the `precis up` that runs does not have vendor %s as configured here: start "+
			"it anew to use it", missing)
		return nil
	default:
		a.say("precis: the worker is started anew: it did not have vendor %s as configured here", missing)
		_, err := startWorker(ctx, cmd, opts, mine)
		return err
	}
}

// serve makes this process a worker until the session is closed. It leaves the outbox alone: it may hold runs of
// others, whose workflows would end with us.
func (s *session) serve(ctx context.Context, log *slog.Logger) error {
	cfg := s.config
	// Nothing is left to drain when the command has what it waited for.
	cfg.Worker.DrainSeconds = min(cfg.Worker.DrainSeconds, 2)
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	ready := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- worker.Run(run, worker.Options{
			Store: s.store, Client: s.client, Config: cfg, Log: log, NoOutbox: true, Ready: func() { close(ready) },
		})
	}()
	select {
	case err := <-ended:
		stop()
		return err
	case <-ready:
	}
	s.onClose(func(context.Context) error {
		stop()
		return <-ended
	})
	return nil
}
