package connect

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"

	"precis/internal/cli/fail"
	"precis/internal/temporalclient"
)

// DialTimeout limits the wait for an answer of Temporal.
const DialTimeout = 10 * time.Second

// OpenTemporal connects to Temporal.
func (s *Session) OpenTemporal(ctx context.Context, log *slog.Logger, tune ...func(*client.Options) error) error {
	ctx, cancel := context.WithTimeout(ctx, DialTimeout)
	defer cancel()
	c, err := temporalclient.Dial(ctx, s.Config.Temporal, log, tune...)
	if err != nil {
		return fail.Stack(err)
	}
	s.Client = c
	s.OnClose(func(context.Context) error { c.Close(); return nil })
	return nil
}

// OpenTemporalLazily connects to Temporal. If it is not reachable the API is served all the same: runs that are
// requested meanwhile start when Temporal is reachable again.
func (s *Session) OpenTemporalLazily(ctx context.Context, log *slog.Logger, tune ...func(*client.Options) error) error {
	err := s.OpenTemporal(ctx, log, tune...)
	if err == nil || ctx.Err() != nil || !fail.IsUnreachable(err) {
		return err
	}
	log.Warn("Temporal is not reachable: serving without it", "error", err)
	if s.Client, err = temporalclient.Lazy(s.Config.Temporal, log, tune...); err != nil {
		return err
	}
	s.OnClose(func(context.Context) error { s.Client.Close(); return nil })
	return nil
}
