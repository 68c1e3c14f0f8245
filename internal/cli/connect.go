package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"precis/internal/cli/connect"
	"precis/internal/cli/fail"
	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/telemetry"
)

// session is what a command works with. Commands on conversations and runs use it through app.service, as the HTTP API
// does.
type session struct{ connect.Session }

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
	if s.Config, s.Origins, err = a.config(cmd); err != nil {
		return err
	}
	if s.Config.DatabaseURL == "" {
		opts := stackOptions(s.Config)
		opts.NoTemporal = true
		stack, err := devstack.Attach(ctx, opts)
		if err != nil {
			return notRunning(err)
		}
		s.Stack, s.Config.DatabaseURL = stack, stack.DatabaseURL
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if err := s.OpenStore(ctx); err != nil {
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

// withServed runs a command that starts runs. It uses the configured stack, or the local one if it is running;
// otherwise it starts a stack and stops it at the end: an ephemeral one, or with keep the persistent one. If no worker
// serves the local stack, this process does.
func (a *app) withServed(cmd *cobra.Command, keep bool, do func(ctx context.Context, s *session) error) (err error) {
	ctx := cmd.Context()
	s := &session{}
	if s.Config, s.Origins, err = a.config(cmd); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	wholly := configured(s.Config)
	if !wholly {
		if err := s.localStack(ctx, a, keep); err != nil {
			return err
		}
	}
	if err := s.OpenStore(ctx); err != nil {
		return err
	}
	log := a.quietLog(s.Config, s.Origins)
	if err := s.OpenTemporal(ctx, log); err != nil {
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
	opts := stackOptions(s.Config)
	opts.Progress = stackProgress(a.progress(), false)
	stack, giveBack, err := devstack.Borrow(ctx, opts, keep)
	if errors.Is(err, devstack.ErrNotRunning) && !keep {
		opts.Ephemeral, opts.NoUI = true, true
		if stack, err = devstack.Up(ctx, opts); err == nil {
			giveBack, s.Ephemeral = stack.Close, s.Config.DatabaseURL == ""
		}
	}
	if err != nil {
		return fail.Stack(err)
	}
	s.OnClose(giveBack)
	s.Use(stack)
	return nil
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
	opts := stackOptions(s.Own)
	w, err := devstack.FindWorker(opts)
	if err != nil {
		return err
	}
	mine, err := setupOf(s.Config)
	if err != nil {
		return err
	}
	theirs := parseSetup(w.Setup)
	switch missing := theirs.lacks(mine); {
	case !w.Running:
		return s.Serve(ctx, log)
	case theirs.Where != mine.Where:
		// That worker uses another database. Queues of our own keep it from taking runs that it could not find there.
		own := "-" + rand.Text()
		s.Config.Worker.TaskQueue += own
		s.Config.Worker.LLMTaskQueue += own
		return s.Serve(ctx, log)
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
