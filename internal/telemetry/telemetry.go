package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// The standard variables that enable traces and choose their protocol.
const (
	endpointVariable       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEndpointVariable = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	protocolVariable       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	tracesProtocolVariable = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	protocol               = "http/protobuf"
)

// scope names the instruments of precis itself.
const scope = "precis"

// Telemetry measures and traces a process. A nil *Telemetry measures and traces nothing.
type Telemetry struct {
	metrics  *Metrics
	meters   *metric.MeterProvider
	registry *prometheus.Registry
	traces   trace.TracerProvider
	stop     []func(context.Context) error
}

// Options configure a Telemetry.
type Options struct {
	// Service names the process in traces, unless OTEL_SERVICE_NAME does: "precis-api", "precis-worker".
	Service string
	// Exporter replaces the exporter that the environment configures, for tests.
	Exporter sdktrace.SpanExporter
}

// Start starts to measure, and to trace if OTEL_EXPORTER_OTLP_ENDPOINT says where traces are sent. The caller must call
// Stop.
func Start(ctx context.Context, o Options) (*Telemetry, error) {
	res, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", o.Service)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("describe the process for telemetry: %w", err)
	}
	t := &Telemetry{registry: prometheus.NewRegistry(), traces: noop.NewTracerProvider()}
	t.registry.MustRegister(collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := exporter.New(exporter.WithRegisterer(t.registry), exporter.WithoutScopeInfo(),
		exporter.WithoutTargetInfo())
	if err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	t.meters = metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(res))
	t.stop = append(t.stop, t.meters.Shutdown)
	if t.metrics, err = newMetrics(t.meters.Meter(scope)); err != nil {
		return nil, fmt.Errorf("set up metrics: %w", err)
	}
	if err := t.startTraces(ctx, o, res); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Telemetry) startTraces(ctx context.Context, o Options, res *resource.Resource) error {
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	switch {
	case o.Exporter != nil:
		options = append(options, sdktrace.WithSyncer(o.Exporter))
	case first(tracesEndpointVariable, endpointVariable) != "":
		if asked := first(tracesProtocolVariable, protocolVariable); asked != "" && asked != protocol {
			return fmt.Errorf(
				"%s is %q, but traces are only sent as %s: set %s to that port of the collector, 4318 by default",
				protocolVariable, asked, protocol, endpointVariable)
		}
		otlp, err := otlptracehttp.New(ctx)
		if err != nil {
			return fmt.Errorf("set up the export of traces: %w", err)
		}
		options = append(options, sdktrace.WithBatcher(otlp))
	default:
		return nil
	}
	provider := sdktrace.NewTracerProvider(options...)
	t.traces = provider
	t.stop = append(t.stop, provider.Shutdown)
	return nil
}

func first(variables ...string) string {
	for _, v := range variables {
		if value := os.Getenv(v); value != "" {
			return value
		}
	}
	return ""
}

// Stop sends what was not sent yet and ends the measurement.
func (t *Telemetry) Stop(ctx context.Context) error {
	if t == nil {
		return nil
	}
	var errs []error
	for i := len(t.stop) - 1; i >= 0; i-- {
		errs = append(errs, t.stop[i](ctx))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end telemetry: %w", err)
	}
	return nil
}

// Metrics returns the instruments of compactions.
func (t *Telemetry) Metrics() *Metrics {
	if t == nil {
		return nil
	}
	return t.metrics
}

// Handler serves the metrics in Prometheus' format.
func (t *Telemetry) Handler() http.Handler {
	if t == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{Registry: t.registry, EnableOpenMetrics: true})
}

// propagator is the W3C's: traceparent and baggage.
var propagator = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})
