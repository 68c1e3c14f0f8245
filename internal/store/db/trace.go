package db

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

const traceParentField = "traceparent"

// TraceParent is the trace that a context belongs to, in the W3C's form; "" for none.
func TraceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceParentField]
}

// WithTraceParent makes a context belong to the trace that traceParent gave.
func WithTraceParent(ctx context.Context, parent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParentField: parent})
}
