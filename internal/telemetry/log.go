// Package telemetry makes the log, the metrics and the traces of a process.
//
//	log.go        the log; escape.go what of a record a terminal would interpret
//	telemetry.go  metrics for Prometheus and traces over OTLP: start and stop
//	metrics.go    the instruments of compactions
//	trace.go      libraries' traces and metrics: HTTP server and client, Temporal
package telemetry

import (
	"io"
	"log/slog"

	"precis/internal/config"
)

// Logger returns the logger of the process, with the configured level and format.
func Logger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // the configuration was checked when it was loaded
	}
	w = escaping{w}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
