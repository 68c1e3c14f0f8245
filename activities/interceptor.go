package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"precis/internal/runreport"
	"precis/internal/store"
	"precis/pipeline"
)

// Interceptor stands around every stage: it beats the heart from the first line to the last, writes each
// attempt to run_steps when it starts and when it ends, and gives errors their kind. Temporal's history keeps
// only the last failure of a retried activity; run_steps keeps them all.
func (a *Activities) Interceptor() interceptor.WorkerInterceptor {
	return &recorder{activities: a}
}

type recorder struct {
	interceptor.WorkerInterceptorBase
	activities *Activities
}

func (r *recorder) InterceptActivity(_ context.Context,
	next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	in := &recorderInbound{activities: r.activities}
	in.Next = next
	return in
}

type recorderInbound struct {
	interceptor.ActivityInboundInterceptorBase
	activities *Activities
}

// referrer is any request of a stage.
type referrer interface{ Reference() Ref }

// namesSummarizer is a request that is about one summarizer.
type namesSummarizer interface{ summarizer() string }

func (r *recorderInbound) ExecuteActivity(ctx context.Context,
	in *interceptor.ExecuteActivityInput,
) (result any, err error) {
	stop := heartbeat(ctx)
	defer stop()
	info := activity.GetInfo(ctx)
	var ref Ref
	if len(in.Args) == 1 {
		if request, ok := in.Args[0].(referrer); ok {
			ref = request.Reference()
		}
	}
	if ref.Run == "" {
		return r.Next.ExecuteActivity(ctx, in)
	}

	notes := &stepNotes{}
	ctx = context.WithValue(ctx, notesKey{}, notes)
	step := store.Step{
		Stage: string(stageOf[info.ActivityType.Name]), Call: ref.Call, Attempt: int(info.Attempt), Rung: ref.Rung,
		Worker: r.activities.Worker, Outcome: store.StepStarted,
	}
	if s, ok := in.Args[0].(namesSummarizer); ok {
		step.Summarizer = s.summarizer()
	}
	began := time.Now()
	if err := r.activities.begin(ctx, ref, step); err != nil {
		return nil, toTemporal(ctx, err, info.Attempt)
	}

	result, err = r.call(ctx, in)
	step.Outcome, step.Took = store.StepOK, max(time.Since(began), time.Millisecond)
	if notes.reused {
		step.Outcome = store.StepReused
	}
	if err != nil {
		step.Outcome, step.ErrorKind, step.Message = store.StepFailed, kindOfFailure(ctx, err), shorten(messageOf(err))
	}
	if notes.record == nil {
		r.activities.Metrics.StageEnded(ctx, step.Stage, string(step.Outcome), string(step.ErrorKind), step.Took)
	}
	step.Numbers, step.Artifacts = notes.numbers(result), notes.artifacts
	// The attempt's own context may be over; what happened in it is still to be told.
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if e := r.activities.Store.RecordStep(record, ref.run(), step); e != nil {
		r.activities.Log.Warn("an attempt was not recorded", "run", ref.Run, "stage", step.Stage, "error", e)
	}
	return result, toTemporal(ctx, err, info.Attempt)
}

// begin records that the attempt starts, and what the ladder made of the call before it.
func (a *Activities) begin(ctx context.Context, ref Ref, step store.Step) error {
	if ref.FailedCall > 0 {
		if err := a.Store.NoteNext(ctx, ref.run(), string(ref.FailedStage), ref.FailedCall, ref.Rung,
			ref.FailedKind); err != nil {
			return err
		}
	}
	return a.Store.RecordStep(ctx, ref.run(), step)
}

// call runs the stage; a panic is a fault of ours and an error like any other.
func (r *recorderInbound) call(ctx context.Context, in *interceptor.ExecuteActivityInput) (result any, err error) {
	defer func() {
		if p := recover(); p != nil {
			r.activities.Log.Error("a stage panicked", "activity", activity.GetInfo(ctx).ActivityType.Name, "panic", p,
				slog.Any("stack", stack()))
			err = &pipeline.Error{
				Kind:    pipeline.Internal,
				Message: fmt.Sprintf("the stage panicked (%T); the worker's log has the details", p),
			}
		}
	}()
	return r.Next.ExecuteActivity(ctx, in)
}

func kindOfFailure(ctx context.Context, err error) pipeline.ErrorKind {
	switch {
	case ctx.Err() != nil && !errors.As(err, new(*pipeline.Error)):
		return pipeline.Cancelled
	case store.Unavailable(err):
		return pipeline.Network
	}
	return pipeline.KindOf(err)
}

func messageOf(err error) string {
	var e *pipeline.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// stepNotes is what a stage has to say about itself beside its result.
type stepNotes struct {
	extra     map[string]any
	artifacts map[string]string
	reused    bool

	// run is that of the step where the stage has read it already, original the one that it repeats, and record what
	// that has of the step, of a replay from the record.
	run, original *store.Run
	record        *record
	differences   []runreport.Difference
}

type notesKey struct{}

// notesOf gives the notes of the attempt under way.
func notesOf(ctx context.Context) *stepNotes {
	if n, ok := ctx.Value(notesKey{}).(*stepNotes); ok {
		return n
	}
	return &stepNotes{}
}

func (n *stepNotes) number(key string, value any) {
	if n.extra == nil {
		n.extra = map[string]any{}
	}
	n.extra[key] = value
}

// give notes what the stage learned from outside, see given.
func (n *stepNotes) give(name string, value any) {
	all, _ := n.extra["given"].(map[string]any)
	if all == nil {
		all = map[string]any{}
		n.number("given", all)
	}
	all[name] = value
}

func (n *stepNotes) artifact(role, sha string) {
	if sha == "" {
		return
	}
	if n.artifacts == nil {
		n.artifacts = map[string]string{}
	}
	n.artifacts[role] = sha
}

// numbers is the stage's result, which holds no text of a conversation, with what the stage added.
func (n *stepNotes) numbers(result any) json.RawMessage {
	all := map[string]any{}
	if b, err := json.Marshal(result); err == nil && result != nil {
		_ = json.Unmarshal(b, &all)
	}
	for k, v := range n.extra {
		all[k] = v
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil
	}
	return b
}
