package store

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

const traceParentField = "traceparent"

// traceParent is the trace that a context belongs to, in the W3C's form; "" for none.
func traceParent(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[traceParentField]
}

// WithTrace makes a context belong to the trace of the request that asked for the run.
func (d Dispatch) WithTrace(ctx context.Context) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParentField: d.TraceParent})
}
