// Package connect opens what the commands work with: the database, Temporal, and a worker in this process where none
// runs. It is the only part of the command line that knows the store: commands work through the service that a session
// gives them, so that validation, defaults and budgets are those of the HTTP API.
//
//	session.go   a session and its end
//	database.go  the schema and the store
//	temporal.go  the client of Temporal
//	worker.go    a worker in this process
package connect

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/telemetry"
)

// CloseTimeout limits closing a session, including the stop of a stack that was started for the call.
const CloseTimeout = 30 * time.Second

// Session holds the connections that a command works with; the caller closes it.
type Session struct {
	// Own is the configuration as it was loaded; Config has the addresses of the stack filled in.
	Own     config.Config
	Config  config.Config
	Origins config.Origins
	Client  client.Client   // nil if the command needs only the database
	Stack   *devstack.Stack // the local servers; nil if database and Temporal are configured
	// Ephemeral reports whether the database is deleted when the command ends.
	Ephemeral bool

	store *store.Store
	// closers close what was opened, last opened first.
	closers []func(context.Context) error
}

// OnClose has f called when the session is closed, before what was opened earlier is closed.
func (s *Session) OnClose(f func(context.Context) error) { s.closers = append(s.closers, f) }

// Close closes everything that was opened, also after the command was interrupted.
func (s *Session) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), CloseTimeout)
	defer cancel()
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i](ctx))
	}
	s.closers = nil
	return errors.Join(errs...)
}

// Use makes the session one of a local stack.
func (s *Session) Use(stack *devstack.Stack) {
	s.Stack, s.Own = stack, s.Config
	s.Config.DatabaseURL = stack.DatabaseURL
	s.Config.Temporal.Address, s.Config.Temporal.Namespace = stack.TemporalAddress, stack.Namespace
}

// Service returns the service of the open connections, the same that the HTTP API is made of. metrics may be nil.
func (s *Session) Service(log *slog.Logger, metrics *telemetry.Metrics) *service.Service {
	return &service.Service{Store: s.store, Temporal: s.Client, Config: s.Config, Log: log, Metrics: metrics}
}
