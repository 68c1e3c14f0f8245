package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.temporal.io/api/serviceerror"

	"precis"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/store/timeline"
	"precis/pipeline"
)

// ErrTemporalAway reports that Temporal did not answer a request. The same request may succeed later.
var ErrTemporalAway = errors.New("Temporal is not reachable")

// maxStarts is how often a start is tried whose error says neither that it may succeed later nor that it cannot. With
// the dispatcher's waits that is a quarter of an hour.
const maxStarts = 20

// Away reports whether err means that Temporal could not be reached or accepts no work at the moment.
func Away(err error) bool {
	return errors.Is(err, ErrTemporalAway) || errors.As(err, new(*serviceerror.Unavailable)) ||
		errors.As(err, new(*serviceerror.DeadlineExceeded)) || errors.As(err, new(*serviceerror.ResourceExhausted)) ||
		errors.As(err, new(*serviceerror.NamespaceUnavailable))
}

// StartRefused reports whether a workflow whose start has failed with err, at the given attempt, can never be started:
// Temporal says that the request is invalid, or has failed it again and again without saying that it may succeed later.
// What an operator can mend is tried for ever: the namespace, its search attributes, the credentials.
func StartRefused(err error, attempts int) bool {
	var invalid *serviceerror.InvalidArgument
	switch {
	case err == nil, Away(err), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.As(err, new(*serviceerror.Canceled)), errors.As(err, new(*serviceerror.PermissionDenied)),
		errors.As(err, new(*serviceerror.NamespaceNotFound)), errors.As(err, new(*serviceerror.NamespaceNotActive)),
		errors.As(err, new(*serviceerror.WorkflowExecutionAlreadyStarted)):
		return false
	case errors.As(err, &invalid):
		return !strings.Contains(strings.ToLower(invalid.Message), "search attribute")
	}
	return attempts >= maxStarts
}

// EndUnstarted ends a run as failed because its workflow cannot be started. A run that has ended is left as it is.
func EndUnstarted(ctx context.Context, s *store.Store, ref store.RunRef, cause error) error {
	run, err := s.Runs.Get(ctx, ref)
	if err != nil || run.Outcome != "" {
		return err
	}
	end := runs.End{
		Outcome: precis.OutcomeFailed, ErrorKind: pipeline.Internal,
		Reason: "Temporal refuses to start the workflow of the run: " + innermost(cause).Error(),
	}
	if run.ReplayOf == "" {
		data, err := json.Marshal(map[string]any{"outcome": end.Outcome, "error_kind": end.ErrorKind})
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		end.Event = &timeline.Event{Kind: timeline.Finished, Data: data}
	}
	_, err = s.Runs.Finish(ctx, ref, end)
	return err
}

// innermost returns the error at the end of the chain of err: Temporal's own.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}
