package telemetry

import (
	"fmt"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.temporal.io/sdk/client"
	temporaltel "go.temporal.io/sdk/contrib/opentelemetry"
)

// Spans and metrics contain no text of a conversation: the server's spans have no query string, the client's no body.

// Server traces and measures the requests of an HTTP server, by route.
func (t *Telemetry) Server(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	// A fixed name: the Host header, which any client can choose, would become a label.
	return otelhttp.NewHandler(next, "http", otelhttp.WithServerName("precis"), otelhttp.WithTracerProvider(t.traces),
		otelhttp.WithMeterProvider(t.meters), otelhttp.WithPropagators(propagator))
}

// Transport traces and measures the requests of an HTTP client, and sends the trace in their headers.
func (t *Telemetry) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(t.traces), otelhttp.WithMeterProvider(t.meters),
		otelhttp.WithPropagators(propagator))
}

// Temporal makes a client trace and measure: what it starts, and the workflows and activities of its workers, belong to
// the trace of the caller.
func (t *Telemetry) Temporal(o *client.Options) error {
	if t == nil {
		return nil
	}
	tracing, err := temporaltel.NewTracingInterceptor(temporaltel.TracerOptions{
		Tracer: t.traces.Tracer(scope), TextMapPropagator: propagator, AllowInvalidParentSpans: true,
	})
	if err != nil {
		return fmt.Errorf("set up the tracing of workflows: %w", err)
	}
	o.Interceptors = append(o.Interceptors, tracing)
	o.MetricsHandler = temporaltel.NewMetricsHandler(temporaltel.MetricsHandlerOptions{
		Meter: t.meters.Meter("temporal-sdk-go"), UseMonotonicCounters: true, OnError: func(error) {},
	})
	return nil
}
