package telemetry

import (
	"fmt"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.temporal.io/sdk/client"
	temporaltel "go.temporal.io/sdk/contrib/opentelemetry"
)

// No span and no metric holds text of a conversation: the server's spans have no query string, the client's no body.

// Server traces and measures what comes in by HTTP, by route.
func (t *Telemetry) Server(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	// A name of our own: the Host header is anybody's, and would be a label.
	return otelhttp.NewHandler(next, "http", otelhttp.WithServerName("precis"), otelhttp.WithTracerProvider(t.traces),
		otelhttp.WithMeterProvider(t.meters), otelhttp.WithPropagators(propagator))
}

// Transport traces and measures what goes out by HTTP, and hands the trace on in its header.
func (t *Telemetry) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(t.traces), otelhttp.WithMeterProvider(t.meters),
		otelhttp.WithPropagators(propagator))
}

// Temporal makes a client trace and measure: what it starts, and the workflows and activities of the workers that are
// made with it, belong to the trace of whoever asked.
func (t *Telemetry) Temporal(o *client.Options) error {
	if t == nil {
		return nil
	}
	tracing, err := temporaltel.NewTracingInterceptor(temporaltel.TracerOptions{
		Tracer: t.traces.Tracer(scope), TextMapPropagator: propagator, AllowInvalidParentSpans: true,
	})
	if err != nil {
		return fmt.Errorf("set the tracing of workflows up: %w", err)
	}
	o.Interceptors = append(o.Interceptors, tracing)
	o.MetricsHandler = temporaltel.NewMetricsHandler(temporaltel.MetricsHandlerOptions{
		Meter: t.meters.Meter("temporal-sdk-go"), UseMonotonicCounters: true, OnError: func(error) {},
	})
	return nil
}
