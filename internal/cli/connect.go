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
	// dialTimeout limits the wait for an answer of Temporal.
	dialTimeout = 10 * time.Second
	// closeTimeout limits closing a session, including the stop of a stack that was started for the call.
	closeTimeout = 30 * time.Second
)

// session holds the connections that a command works with; the caller closes it. Commands on conversations and runs use
// it through app.service, as the HTTP API does. The session itself stays below the service: it opens the store and
// Temporal that the service is made of, and makes this process a worker where none runs.
type session struct {
	// own is the configuration as it was loaded; config has the addresses of the stack filled in.
	own     config.Config
	config  config.Config
	origins config.Origins
	store   *store.Store
	client  client.Client   // nil if the command needs only the store
	stack   *devstack.Stack // the local servers; nil if database and Temporal are configured
	// ephemeral reports whether the database is deleted when the command ends.
	ephemeral bool
	// closers close what was opened, last opened first.
	closers []func(context.Context) error
}

func (s *session) onClose(f func(context.Context) error) { s.closers = append(s.closers, f) }

// close closes everything that was opened, also after the command was interrupted.
func (s *session) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i](ctx))
	}
	s.closers = nil
	return errors.Join(errs...)
}

// launcher returns the launcher, which starts runs and waits for them.
func (s *session) launcher() launch.Launcher {
	return launch.Launcher{Store: s.store, Client: s.client, Config: s.config}
}

// configured reports whether both database and Temporal are configured, so that no local stack is needed.
func configured(c config.Config) bool { return c.DatabaseURL != "" && c.Temporal.Address != "" }

// stackOptions returns the options of the local stack, with the configured servers that replace its own.
func stackOptions(c config.Config) devstack.Options {
	return devstack.Options{
		Dir: c.Dir, DatabaseURL: c.DatabaseURL, TemporalAddress: c.Temporal.Address,
		TemporalNamespace: c.Temporal.Namespace,
	}
}

// withStore runs a command that needs only the database: the configured one, or the one of the local stack, which must
// be running.
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

// notRunning turns the error for a missing local stack into one that says what to do.
func notRunning(err error) error {
	if errors.Is(err, devstack.ErrNotRunning) {
		return fail.Unreachablef(
			"the local stack is not running and no database is configured: start it with `precis " +
				"up`, or set PRECIS_DATABASE_URL")
	}
	return fail.Stack(err)
}

// openStore opens the database. It migrates the schema of a local one; any other must be up to date already.
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
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := temporalclient.Dial(ctx, s.config.Temporal, log, tune...)
	if err != nil {
		return fail.Stack(err)
	}
	s.client = c
	s.onClose(func(context.Context) error { c.Close(); return nil })
	return nil
}

// withServed runs a command that starts runs. It uses the configured stack, or the local one if it is running;
// otherwise it starts a stack and stops it at the end: an ephemeral one, or with keep the persistent one. If no worker
// serves the local stack, this process does.
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

// localStack uses the local stack if it is running, and starts one otherwise.
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

// quietLog returns the logger for workers and clients inside a command. It discards everything unless log.level is
// set: what went wrong in a run is in its record.
func (a *app) quietLog(c config.Config, origins config.Origins) *slog.Logger {
	if origins.Of("log.level").Source == config.SourceDefault {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return telemetry.Logger(a.err, c.Log)
}

// serveUnlessServed makes this process the worker, unless one is running for the local stack. A background worker that
// lacks a vendor of this configuration is restarted with it.
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
		// That worker uses another database. Queues of our own keep it from taking runs that it could not find there.
		own := "-" + rand.Text()
		s.config.Worker.TaskQueue += own
		s.config.Worker.LLMTaskQueue += own
		return s.serve(ctx, log)
	case missing == "":
		return nil
	case w.Log == "":
		a.say("precis: the worker of the running `precis up` does not have vendor %s as configured here: restart "+
			"`precis up` to use it", missing)
		return nil
	default:
		a.say("precis: the worker is restarted: it did not have vendor %s as configured here", missing)
		_, err := startWorker(ctx, cmd, opts, mine)
		return err
	}
}

// serve makes this process a worker until the session is closed. It does not process the outbox, which may hold runs of
// other commands: their workflows would be interrupted when this command ends.
func (s *session) serve(ctx context.Context, log *slog.Logger) error {
	cfg := s.config
	// When the command ends, its runs have ended: there is hardly anything to drain.
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
