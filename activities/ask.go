package activities

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sethvargo/go-retry"

	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/internal/store/breakers"
	"precis/internal/store/modelcalls"
	"precis/internal/telemetry"
	"precis/pipeline"
)

// recordedAnswer is a model's complete answer as it is stored. A retry of the same call takes it instead of calling the
// model again, and audit reads it.
type recordedAnswer struct {
	Answer    pipeline.Answer `json:"answer"`
	Usage     llm.Usage       `json:"usage"`
	Model     string          `json:"model,omitempty"`
	RequestID string          `json:"request_id,omitempty"`
	// Kind and Message say why the answer is not a summary, where the vendor's client found that out.
	Kind    pipeline.ErrorKind `json:"kind,omitempty"`
	Message string             `json:"message,omitempty"`
	// Native and NativeText are those of llm.Result.
	Native     json.RawMessage `json:"native,omitempty"`
	NativeText string          `json:"native_text,omitempty"`
	// Raw is the body as it came.
	Raw string `json:"raw"`
}

func (r recordedAnswer) err() error {
	if r.Kind == "" {
		return nil
	}
	return &pipeline.Error{Kind: r.Kind, Message: r.Message}
}

// ask sends the prepared input to the model, unless an earlier attempt at this call has its answer. The model call
// is booked before it is sent and with its answer the moment that is complete, so that a crash in between
// shows as a call that was perhaps paid for.
func (a *Activities) ask(ctx context.Context, w writing, prompt pipeline.Prompt) (recordedAnswer, error) {
	if w.at.record != nil {
		return a.recall(ctx, w.at)
	}
	req := w.req
	client, why := a.client(req.Summarizer.Vendor)
	if client == nil {
		return recordedAnswer{}, pipeline.Errorf(pipeline.ModelNotFound, "%s", why)
	}
	input, err := a.Store.Artifacts.Get(ctx, req.Tenant, req.Input)
	if err != nil {
		return recordedAnswer{}, err
	}
	call, err := newCall(req, prompt, w.view, input)
	if err != nil {
		return recordedAnswer{}, err
	}

	booked, err := a.booking(w, input)
	if err != nil {
		return recordedAnswer{}, err
	}
	earlier, err := a.begun(ctx, runOf(req.Ref), booked)
	if spent := (*modelcalls.BudgetError)(nil); errors.As(err, &spent) {
		return recordedAnswer{}, overBudget(spent)
	}
	if err != nil {
		return recordedAnswer{}, err
	}
	if earlier != nil {
		var kept recordedAnswer
		if err := json.Unmarshal(earlier, &kept); err != nil {
			return kept, fmt.Errorf("read the kept answer: %w", err)
		}
		w.notes.AnswerReused = true
		w.at.artifact(contract.ArtifactAnswer, store.Hash(sha256.Sum256(earlier)).String())
		return kept, kept.err()
	}

	sent := time.Now()
	callCtx, cancel := context.WithTimeout(ctx, a.modelTimeout())
	defer cancel()
	w.at.turn.End() // others compute while the model writes
	answered, callErr := client.Call(callCtx, call)
	took := time.Since(sent)
	w.notes.ModelMS = took.Milliseconds()
	a.Metrics.ModelCalled(ctx, telemetry.ModelCall{
		Vendor: req.Summarizer.Vendor, Summarizer: req.Summarizer.String(), ErrorKind: string(pipeline.KindOf(callErr)),
		Took: took, Input: answered.Usage.Input, CachedInput: answered.Usage.CachedInput, Output: answered.Usage.Output,
	})
	record := recordedAnswer{
		Answer: answered.Answer, Usage: answered.Usage, Model: answered.Model, RequestID: answered.RequestID,
		Raw: string(answered.Raw), Native: answered.Native, NativeText: answered.NativeText,
	}
	if err := a.book(ctx, w.at, booked, &record, answered.Status, callErr); err != nil {
		return record, err
	}
	a.countForBreaker(ctx, w, booked.Attempt, callErr)
	if callErr != nil {
		return record, callErr
	}
	return record, a.takeTurnAgain(ctx, w.at)
}

// begun books a call, unless the run has its answer: from an earlier attempt, or to the same bytes in another call.
func (a *Activities) begun(ctx context.Context, run store.RunRef, call modelcalls.Call) ([]byte, error) {
	answer, err := a.Store.ModelCalls.AnswerTo(ctx, run, call)
	if errors.Is(err, store.ErrNotFound) {
		return a.Store.ModelCalls.Begin(ctx, run, call)
	}
	return answer, err
}

// newCall makes the model call of a prepared input.
func newCall(req contract.SummarizeRequest, prompt pipeline.Prompt, view conversation.View,
	input []byte,
) (llm.Call, error) {
	call := llm.Call{
		Model: req.Summarizer.Model, MaxOutput: req.MaxOutput,
		Meta: llm.Metadata{
			Reason: llm.ReasonSummarization, Feature: prompt.Name, RunID: req.Ref.Run, Tenant: req.Tenant,
		},
	}
	switch req.Summarizer.Kind {
	case pipeline.SummarizerSelf, pipeline.SummarizerNative:
		call.Body, call.Format, call.Native = input, view.Conversation.Format, contract.NativeForm(req.Summarizer.Form)
	default:
		var in externalInput
		if err := json.Unmarshal(input, &in); err != nil {
			return call, fmt.Errorf("read the summarizer's input: %w", err)
		}
		call.System, call.User = in.System, in.User
	}
	return call, nil
}

// recall reads from the record what the model answered, or how the call failed.
func (a *Activities) recall(ctx context.Context, at *attempt) (recordedAnswer, error) {
	var answer recordedAnswer
	rec := at.record
	ledger, err := a.Store.ModelCalls.List(ctx, rec.original.Ref)
	if err != nil {
		return answer, err
	}
	for _, e := range ledger {
		if e.Call != rec.call || e.State != modelcalls.Complete {
			continue
		}
		data, err := a.Store.Artifacts.Get(ctx, rec.original.Ref.Tenant, e.Answer)
		if err != nil {
			return answer, errPruned(rec.original,
				fmt.Sprintf("the answer of %s/%s in step %d", e.Vendor, e.Model, e.Call),
				err)
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return answer, fmt.Errorf("read the recorded answer: %w", err)
		}
		at.artifact(contract.ArtifactAnswer, e.Answer)
		return answer, answer.err()
	}
	if sha := rec.artifact(contract.ArtifactAnswer); sha != "" { // that of an earlier call with the same bytes
		data, err := a.Store.Artifacts.Get(ctx, rec.original.Ref.Tenant, sha)
		if err != nil {
			return answer, errPruned(rec.original, fmt.Sprintf("the answer that step %d took over", rec.call), err)
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return answer, fmt.Errorf("read the recorded answer: %w", err)
		}
		at.artifact(contract.ArtifactAnswer, sha)
		return answer, answer.err()
	}
	if kind, message := rec.failure(); kind != "" {
		return answer, &pipeline.Error{Kind: kind, Message: message}
	}
	return answer, errNotRecorded(rec.original, fmt.Sprintf("what the model answered in step %d", rec.call))
}

// book writes down how the call ended. The answer is paid for: while the database is away this waits for it,
// as long as the attempt may take.
func (a *Activities) book(ctx context.Context, at *attempt, booked modelcalls.Call, record *recordedAnswer,
	status int, callErr error,
) error {
	usage := record.Usage
	end := modelcalls.Result{
		Input: int64(usage.Input - usage.CachedInput - usage.CacheWrite), CachedInput: int64(usage.CachedInput),
		CacheWrite: int64(usage.CacheWrite), Output: int64(usage.Output), RequestID: record.RequestID,
	}
	end.Input = max(end.Input, 0)
	if callErr != nil {
		end.ErrorKind = pipeline.KindOf(callErr)
	}
	if complete(status, callErr) {
		if e := asError(callErr); e != nil {
			record.Kind, record.Message = e.Kind, e.Message
		}
		data, err := json.Marshal(record)
		if err != nil {
			return fmt.Errorf("encode the model's answer: %w", err)
		}
		end.Answer = data
	}
	// Also when the run was cancelled meanwhile: what was used is booked.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), bookingTimeout)
	defer cancel()
	wait := retry.WithCappedDuration(5*time.Second, retry.NewExponential(200*time.Millisecond))
	sha, err := retry.DoValue(ctx, wait, func(ctx context.Context) (string, error) {
		sha, err := a.Store.ModelCalls.Finish(ctx, runOf(at.ref), booked, end)
		if store.Unavailable(err) {
			return "", retry.RetryableError(err)
		}
		return sha, err
	})
	at.artifact(contract.ArtifactAnswer, sha)
	return err
}

// bookingTimeout is how long a finished model call waits for an unreachable database before its attempt fails.
const bookingTimeout = 10 * time.Minute

// complete reports whether the vendor finished its answer, good or bad: another call would cost the same again and
// give the same answer.
func complete(status int, err error) bool {
	if err == nil {
		return true
	}
	switch pipeline.KindOf(err) {
	case pipeline.OutputTooLong, pipeline.EmptyOutput, pipeline.ToolCallOutput, pipeline.Refused:
		return status == http.StatusOK
	}
	return false
}

// countForBreaker counts how a call ended for the breaker of the tenant and the model, by the installation's threshold.
func (a *Activities) countForBreaker(ctx context.Context, w writing, attempt int, err error) {
	ref, s := w.at.ref, w.req.Summarizer
	key := a.breakerOf(ref.Tenant, s.Vendor, s.Model)
	var failure error
	if kind := pipeline.KindOf(err); kind == "" {
		failure = a.Store.Breakers.Answered(ctx, key)
	} else {
		call := breakers.Call{Run: runOf(ref), Call: ref.Call, Attempt: attempt}
		failure = a.Store.Breakers.Failed(ctx, key, call, kind, shorten(messageOf(err)),
			a.Config.Settings.Breaker.Failures)
	}
	if failure != nil && !errors.Is(failure, context.Canceled) {
		a.Log.Warn("a breaker was not updated", "breaker", key, "error", failure)
	}
}

// breakerOf returns the key of a tenant's breaker for a model.
func (a *Activities) breakerOf(tenant, vendor, model string) breakers.Key {
	v := a.Config.Vendors[vendor]
	credential := llm.Vendor{Name: vendor, Type: v.Type, BaseURL: v.BaseURL, APIKey: v.APIKey, Headers: v.Headers}
	return breakers.OfModel(tenant, vendor, model, credential.Credential())
}
