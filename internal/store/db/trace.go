package db

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

const traceParentField = "traceparent"

// TraceParent returns the trace that a context belongs to as a W3C traceparent, "" for none.
func TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceParentField]
}

// WithTraceParent returns a context that belongs to the trace that TraceParent returned.
func WithTraceParent(ctx context.Context, parent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParentField: parent})
}
