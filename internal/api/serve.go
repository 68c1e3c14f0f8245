package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

const (
	// headerTimeout is how long a client may take to send the header of a request.
	headerTimeout = 10 * time.Second
	// idleTimeout is how long a connection without a request is kept open.
	idleTimeout = 2 * time.Minute
	maxHeader   = 64 << 10
)

// ErrNoKeys is the error of Listen for an address that other machines can reach while there is no API key.
var ErrNoKeys = errors.New(
	"there is no API key, and without one everybody who reaches the server could read and change everything")

// ErrAddress is the error of Listen for an address that cannot be opened.
var ErrAddress = errors.New("the API cannot listen on this address")

// Listen opens the configured address. One that is not on loopback is refused as ErrNoKeys while there is no API key.
func (s *Server) Listen(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", s.config.Addr)
	if err != nil {
		return nil, fmt.Errorf("http.addr: %w: %w", ErrAddress, err)
	}
	if err := s.mayServe(ctx, l.Addr()); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

func (s *Server) mayServe(ctx context.Context, addr net.Addr) error {
	tcp, ok := addr.(*net.TCPAddr)
	local := ok && tcp.IP.IsLoopback()
	s.local.Store(local)
	if local {
		return nil
	}
	has, err := s.store.Keys.Any(ctx)
	if err != nil {
		return err
	}
	if !has {
		return fmt.Errorf("http.addr is %s, which other machines can reach: %w. Make one with `precis keys "+
			"create`, or listen on 127.0.0.1", s.config.Addr, ErrNoKeys)
	}
	return nil
}

// Serve answers requests until ctx ends. Then it ends event streams and waits, lets other requests finish for
// http.shutdown_seconds, and closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		s.Close()
		return fmt.Errorf("serve HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	s.Close()
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx),
		time.Duration(s.config.ShutdownSeconds)*time.Second)
	defer cancel()
	if err := srv.Shutdown(shutdownCtx); err != nil {
		s.log.Warn("requests were cut off: they took longer than http.shutdown_seconds", "seconds",
			s.config.ShutdownSeconds)
		_ = srv.Close()
	}
	<-ended
	return nil
}

// Close ends event streams and waits, and makes /readyz fail. Serve calls it; callers that serve Handler in another way
// call it themselves.
func (s *Server) Close() {
	s.stop()
	s.hub.close()
}
