// Package telemetry is what an operator sees of a process: its log, its metrics, its traces.
//
//	log.go        the log
//	telemetry.go  metrics for Prometheus and traces over OTLP, set up and ended
//	metrics.go    the instruments of compactions
//	trace.go      what is traced and measured without our doing: HTTP in and out, Temporal
package telemetry

import (
	"io"
	"log/slog"

	"precis/internal/config"
)

// Logger makes the process's logger, in the configured level and format.
func Logger(w io.Writer, c config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Level)); err != nil {
		level = slog.LevelInfo // the configuration was checked when it was loaded
	}
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
