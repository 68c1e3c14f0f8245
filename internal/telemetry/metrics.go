package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// The bucket bounds of the histograms.
var (
	// The bounds distinguish stages of milliseconds as well as runs of ten minutes.
	secondBounds = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640}
	tokenBounds  = []float64{
		1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000,
		2_048_000,
	}
	ratioBounds = []float64{.01, .02, .05, .1, .15, .2, .3, .4, .5, .75, 1}
)

// Metrics are the instruments of compactions. A nil *Metrics counts nothing.
type Metrics struct {
	status       metric.Int64Counter
	run          metric.Float64Histogram
	stage        metric.Float64Histogram
	turn         metric.Float64Histogram
	model        metric.Float64Histogram
	modelTokens  metric.Int64Counter
	tokensBefore metric.Int64Histogram
	tokensAfter  metric.Int64Histogram
	ratio        metric.Float64Histogram
}

func newMetrics(meter metric.Meter) (*Metrics, error) {
	m := &Metrics{}
	var errs []error
	seconds := func(name, about string) metric.Float64Histogram {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(about),
			metric.WithExplicitBucketBoundaries(secondBounds...))
		errs = append(errs, err)
		return h
	}
	tokens := func(name, about string) metric.Int64Histogram {
		h, err := meter.Int64Histogram(name, metric.WithDescription(about),
			metric.WithExplicitBucketBoundaries(tokenBounds...))
		errs = append(errs, err)
		return h
	}
	counter := func(name, about string) metric.Int64Counter {
		c, err := meter.Int64Counter(name, metric.WithDescription(about))
		errs = append(errs, err)
		return c
	}
	m.status = counter("precis_compaction_status", "Runs by how they ended.")
	m.run = seconds("precis_compaction_run", "From the first stage of a run to its end.")
	m.stage = seconds("precis_compaction_stage", "Attempts at a stage.")
	m.turn = seconds("precis_compaction_turn_wait",
		"Until a stage with a large conversation got its turn among the tenants of its worker.")
	m.model = seconds("precis_compaction_model_call",
		"Requests to models, from the first byte sent to the last received.")
	m.modelTokens = counter("precis_compaction_model_tokens",
		"Tokens that models were sent and wrote, by the vendors' own count.")
	m.tokensBefore = tokens("precis_compaction_tokens_before",
		"Size of the whole context before a compaction that took effect or is prepared.")
	m.tokensAfter = tokens("precis_compaction_tokens_after", "Size of the whole context after it.")
	var err error
	m.ratio, err = meter.Float64Histogram("precis_compaction_ratio",
		metric.WithDescription("Tokens after over tokens before."), metric.WithExplicitBucketBoundaries(ratioBounds...))
	return m, errors.Join(append(errs, err)...)
}

// RunEnd is a run that has ended.
type RunEnd struct {
	// Outcome, ErrorKind, Summarizer ("self", "VENDOR/MODEL", "digest") and Trigger are those of the run; Stage is the
	// one in which it ended.
	Outcome, ErrorKind, Stage, Summarizer, Trigger string
	// TokensBefore and TokensAfter are 0 for a run that changed nothing.
	TokensBefore, TokensAfter int
	// Took is the time from its first stage to its end. 0 leaves it out: a prepared summary was measured when it was
	// written, and the wait until it is applied does not count.
	Took time.Duration
}

// RunEnded counts a run. A run that prepared a summary is counted twice: when the summary was written, and when it is
// applied.
func (m *Metrics) RunEnded(ctx context.Context, end RunEnd) {
	if m == nil {
		return
	}
	m.status.Add(ctx, 1, metric.WithAttributes(
		attribute.String("outcome", end.Outcome), attribute.String("error_kind", end.ErrorKind),
		attribute.String("stage", end.Stage),
		attribute.String("summarizer", end.Summarizer), attribute.String("trigger", end.Trigger)))
	if end.Took > 0 {
		m.run.Record(ctx, end.Took.Seconds(), metric.WithAttributes(
			attribute.String("outcome", end.Outcome), attribute.String("trigger", end.Trigger)))
	}
	if end.TokensBefore <= 0 || end.TokensAfter <= 0 {
		return
	}
	by := metric.WithAttributes(attribute.String("outcome", end.Outcome),
		attribute.String("summarizer", end.Summarizer))
	m.tokensBefore.Record(ctx, int64(end.TokensBefore), by)
	m.tokensAfter.Record(ctx, int64(end.TokensAfter), by)
	m.ratio.Record(ctx, float64(end.TokensAfter)/float64(end.TokensBefore), by)
}

// StageEnded counts an attempt of a stage; kind says why it failed.
func (m *Metrics) StageEnded(ctx context.Context, stage, outcome, kind string, took time.Duration) {
	if m == nil {
		return
	}
	m.stage.Record(ctx, took.Seconds(), metric.WithAttributes(
		attribute.String("stage", stage), attribute.String("outcome", outcome), attribute.String("error_kind", kind)))
}

// TurnTaken measures how long a stage with a large conversation waited for its turn.
func (m *Metrics) TurnTaken(ctx context.Context, stage string, waited time.Duration) {
	if m == nil {
		return
	}
	m.turn.Record(ctx, waited.Seconds(), metric.WithAttributes(attribute.String("stage", stage)))
}

// ModelCall is a model call that has ended.
type ModelCall struct {
	// Summarizer is "self" or "VENDOR/MODEL". The latter may be a name that a client chose: OpenTelemetry limits the
	// number of different ones (2,000 sets of labels; the rest is counted under otel_metric_overflow).
	Vendor, Summarizer, ErrorKind string
	Took                          time.Duration
	// Tokens: Input includes CachedInput.
	Input, CachedInput, Output int
}

// ModelCalled counts a model call.
func (m *Metrics) ModelCalled(ctx context.Context, c ModelCall) {
	if m == nil {
		return
	}
	vendor, summarizer := attribute.String("vendor", c.Vendor), attribute.String("summarizer", c.Summarizer)
	m.model.Record(ctx, c.Took.Seconds(),
		metric.WithAttributes(vendor, summarizer, attribute.String("error_kind", c.ErrorKind)))
	for _, part := range []struct {
		name string
		n    int
	}{{"input", c.Input - c.CachedInput}, {"cached_input", c.CachedInput}, {"output", c.Output}} {
		if part.n > 0 {
			m.modelTokens.Add(ctx, int64(part.n),
				metric.WithAttributes(vendor, summarizer, attribute.String("kind", part.name)))
		}
	}
}
