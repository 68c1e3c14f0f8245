package activities

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"go.temporal.io/sdk/activity"

	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/fair"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// attempt is one attempt at a stage: the run that it works for, what it reads from the record when it replays one, and
// what it notes for its row of run_attempts.
type attempt struct {
	ref   contract.Ref
	stage contract.Stage
	// run is nil until open has read it.
	run *runs.Run
	// number counts the attempts at the call from 1, and faults those before this one that ended by a fault of ours.
	number, faults int
	// heavy is set if the attempt takes turns with those of other tenants. turn is its place among those that compute,
	// and waited how long it took to get one.
	heavy  bool
	turn   *fair.Turn
	waited time.Duration
	// reused reports that an earlier attempt at this call had left its result.
	reused bool
	// late reports that the run had ended before the attempt began: it is not recorded, and does no work.
	late bool
	// artifacts are the references that the attempt notes, by role.
	artifacts map[contract.ArtifactKind]string

	// original is the run that this one replays, nil: none. record is what the original recorded of this call, set in
	// replays from the record only.
	original    *runs.Run
	record      *record
	differences []wire.RunDifference
}

// artifact notes a reference; an empty one is left out.
func (at *attempt) artifact(role contract.ArtifactKind, sha string) {
	if sha == "" {
		return
	}
	if at.artifacts == nil {
		at.artifacts = map[contract.ArtifactKind]string{}
	}
	at.artifacts[role] = sha
}

// difference notes where a stage of a replay differs from the record. The first one is what the comparison shows.
func (at *attempt) difference(d wire.RunDifference) { at.differences = append(at.differences, d) }

// recorded runs one attempt at a stage: it sends heartbeats from the first line to the last, writes the attempt to
// run_attempts when it starts and when it ends, and gives errors their kind. Temporal's history keeps only the last
// failure of a retried activity; run_attempts keeps them all.
func recorded[R, N any](ctx context.Context, a *Activities, stage contract.Stage, ref contract.Ref, summarizer string,
	notes *N,
	work func(context.Context, *attempt) (R, error),
) (R, error) {
	stop := heartbeat(ctx)
	defer stop()
	var none R
	tries := activity.GetInfo(ctx).Attempt
	at := &attempt{ref: ref, stage: stage}
	row := runs.Attempt{
		Stage: stage, Call: ref.Call, Attempt: int(tries), Rung: ref.Rung, Summarizer: summarizer,
		Worker: a.Worker, Outcome: contract.AttemptStarted,
	}
	began := time.Now()
	err := a.begin(ctx, at, &row)
	if at.late = errors.Is(err, store.ErrRunEnded); err != nil && !at.late {
		return none, toTemporal(ctx, err, tries)
	}

	result, err := guarded(ctx, a, at, work)
	at.turn.End()
	if at.late {
		return result, toTemporal(ctx, err, tries)
	}
	row.Outcome, row.Took = contract.AttemptOK, max(time.Since(began), time.Millisecond)
	if at.reused {
		row.Outcome = contract.AttemptReused
	}
	if err != nil {
		row.Outcome, row.ErrorKind, row.Message = contract.AttemptFailed, kindOfFailure(ctx, err),
			shorten(messageOf(err))
	}
	if at.record == nil {
		a.Metrics.StageEnded(ctx, string(row.Stage), string(row.Outcome), string(row.ErrorKind), row.Took)
	}
	row.Artifacts = at.artifacts
	var encodeErr error
	row.Numbers, encodeErr = json.Marshal(contract.Numbers[contract.Numbers[R, N], contract.Waited]{
		Result: contract.Numbers[R, N]{Result: result, Notes: *notes},
		Notes:  contract.Waited{WaitedMS: at.waited.Milliseconds()},
	})
	// The attempt's own context may have ended; what happened in it is recorded all the same.
	recordCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	recordErr := a.Store.Attempts.Record(recordCtx, runOf(ref), row)
	if errors.Is(recordErr, store.ErrRunEnded) {
		recordErr = nil // another attempt at the call recorded its end before the run's
	}
	if e := errors.Join(encodeErr, recordErr); e != nil {
		a.Log.Warn("an attempt was not recorded", "run", ref.Run, "stage", row.Stage, "error", e)
	}
	return result, toTemporalAfter(ctx, err, tries, at.faults)
}

// recordTimeout bounds the write that ends an attempt's record.
const recordTimeout = 10 * time.Second

// begin records that the attempt starts, and which fallback followed the failed call before it. The error is
// store.ErrRunEnded if the run has ended.
func (a *Activities) begin(ctx context.Context, at *attempt, row *runs.Attempt) error {
	ref := at.ref
	if ref.FailedCall > 0 {
		if err := a.Store.Attempts.NoteNext(ctx, runOf(ref), ref.FailedStage, ref.FailedCall, ref.Rung,
			ref.FailedKind); err != nil {
			return err
		}
	}
	var err error
	at.number, at.faults, err = a.Store.Attempts.Begin(ctx, runOf(ref), *row, ref.Tries > 0)
	row.Attempt = at.number
	return err
}

// triedEnough returns an error if the attempts before this one have shown that the stage cannot do it: they took the
// worker down, did not come to an end or failed by a fault of ours, and the next one would do so too.
func (at *attempt) triedEnough() error {
	if at.faults < contract.MaxTries {
		return nil
	}
	return &finalError{pipeline.Errorf(pipeline.Internal, "stage %s was tried %d times, and each time it failed by a "+
		"fault of precis, took too long or took its worker down", at.stage, at.faults)}
}

// guarded runs the stage. A panic is a fault of ours and becomes an error of kind internal.
func guarded[R any](ctx context.Context, a *Activities, at *attempt,
	work func(context.Context, *attempt) (R, error),
) (result R, err error) {
	defer func() {
		if p := recover(); p != nil {
			a.Log.Error("a stage panicked", "stage", at.stage, "panic", p, slog.String("stack", string(debug.Stack())))
			err = &pipeline.Error{
				Kind:    pipeline.Internal,
				Message: fmt.Sprintf("stage %s panicked (%T); the worker's log has the details", at.stage, p),
			}
		}
	}()
	return work(ctx, at)
}

// kept is a stage's result as it is stored, with what the attempt that left it had noted. An attempt that finds it
// after a crash takes over both, so that the record is complete.
type kept struct {
	Result    json.RawMessage                  `json:"result"`
	Artifacts map[contract.ArtifactKind]string `json:"artifacts,omitempty"`
	Numbers   json.RawMessage                  `json:"numbers,omitempty"`
}

// once returns the result that an earlier attempt at this call left, or does the work and stores its result before it
// returns. When two attempts race, the first one's result counts for both. The result of a replay from the record is
// compared with the original's.
func once[R, N any](ctx context.Context, a *Activities, at *attempt, notes *N,
	work func(run runs.Run) (R, error),
) (R, error) {
	var result R
	data, err := a.Store.Attempts.Result(ctx, runOf(at.ref), at.stage, at.ref.Call)
	switch {
	case err == nil:
		at.reused = true
		return decode[R](data, at, notes)
	case !errors.Is(err, store.ErrNotFound):
		return result, err
	}
	if err := at.triedEnough(); err != nil {
		return result, err
	}
	if err := a.open(ctx, at); err != nil {
		return result, err
	}
	// The marker of a run is its end, so that only the stage that wrote it is tried again after the end.
	if at.run.Outcome != "" && at.stage != contract.StageReassemble {
		return result, store.ErrRunEnded
	}
	if at.record != nil {
		if err := at.follows(); err != nil {
			return result, errors.Join(err, a.keepDifferences(ctx, at))
		}
	}
	result, err = work(*at.run)
	if at.record != nil {
		err = a.compare(ctx, at, result, err)
	}
	if err != nil {
		return result, err
	}
	data, err = encode(result, at, notes)
	if err != nil {
		return result, err
	}
	if data, err = a.Store.Attempts.PutResult(ctx, runOf(at.ref), at.stage, at.ref.Call, data); err != nil {
		return result, err
	}
	return decode[R](data, at, notes)
}

// encode makes what once stores.
func encode[R, N any](result R, at *attempt, notes *N) ([]byte, error) {
	k := kept{Artifacts: at.artifacts}
	var err error
	if k.Result, err = json.Marshal(result); err != nil {
		return nil, fmt.Errorf("encode the result of stage %s: %w", at.stage, err)
	}
	if k.Numbers, err = json.Marshal(notes); err != nil {
		return nil, fmt.Errorf("encode what stage %s noted: %w", at.stage, err)
	}
	data, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("encode what stage %s leaves: %w", at.stage, err)
	}
	return data, nil
}

// decode reads a stored result and takes over what was noted with it.
func decode[R, N any](data []byte, at *attempt, notes *N) (R, error) {
	var result R
	var k kept
	err := json.Unmarshal(data, &k)
	if err == nil {
		err = json.Unmarshal(k.Result, &result)
	}
	if err != nil {
		return result, fmt.Errorf("read the stored result of stage %s: %w", at.stage, err)
	}
	for role, sha := range k.Artifacts {
		at.artifact(role, sha)
	}
	var noted N
	if err := json.Unmarshal(k.Numbers, &noted); err != nil {
		return result, fmt.Errorf("read what stage %s noted: %w", at.stage, err)
	}
	*notes = noted
	return result, nil
}
