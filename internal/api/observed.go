package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"precis/internal/api/wire"
	"precis/internal/telemetry"
	"precis/internal/version"
)

// ServeObserved serves /healthz, /readyz and /metrics of a process that has no API, such as a worker. It
// ends with the context.
func ServeObserved(ctx context.Context, addr string, p *Probe, tel *telemetry.Telemetry) error {
	srv := &http.Server{
		Addr: addr, Handler: loopbackOnly(addr, observed(p, tel)), ReadHeaderTimeout: headerTimeout,
		MaxHeaderBytes: maxHeader,
	}
	stop := context.AfterFunc(ctx, func() {
		shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = srv.Shutdown(shutdownCtx)
	})
	defer stop()
	if err := srv.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics on %s (worker.metrics_addr): %w", addr, err)
	}
	return nil
}

func observed(p *Probe, tel *telemetry.Telemetry) http.Handler {
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = jsonFormat.Marshal(w, v) // fails only if the client has disconnected
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, wire.Alive{Status: "ok", Version: version.Code()})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ready := p.Ready(r.Context())
		status := http.StatusOK
		if ready.Status != "ready" {
			status = http.StatusServiceUnavailable
		}
		answer(w, status, ready)
	})
	mux.Handle("GET /metrics", tel.Handler())
	return mux
}
