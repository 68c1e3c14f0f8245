package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.temporal.io/sdk/temporal"
	"pgregory.net/rapid"

	"precis/pipeline"
)

// applicationError is what Temporal decides by.
type applicationError struct {
	Type      string
	Message   string
	Permanent bool
	Benign    bool
}

func TestErrorsDecideAboutRetries(t *testing.T) {
	t.Parallel()
	transient := pipeline.Errorf(pipeline.Overloaded, "the vendor is overloaded")
	for _, tt := range []struct {
		name    string
		err     error
		attempt int32
		want    applicationError
	}{
		{
			"a transient error is tried again", transient, 1,
			applicationError{Type: "overloaded", Message: "the vendor is overloaded", Benign: true},
		},
		{
			"a transient error is final after the last attempt", transient, maxTransientAttempts,
			applicationError{Type: "overloaded", Message: "the vendor is overloaded", Benign: true, Permanent: true},
		},
		{
			"a permanent error is final at once", pipeline.Errorf(pipeline.Auth, "the key is not valid"), 1,
			applicationError{Type: "auth", Message: "the key is not valid", Permanent: true},
		},
		{
			"the kind is found behind other errors",
			fmt.Errorf("summarize: %w", pipeline.Errorf(pipeline.Refused, "the model refused")), 1,
			applicationError{Type: "refused", Message: "the model refused", Permanent: true},
		},
		{
			"any other error is a fault of ours and tried again", errors.New("no such table"), 1,
			applicationError{Type: "internal", Message: "no such table"},
		},
		{
			"a fault of ours is final after the last attempt", errors.New("no such table"), maxInternalAttempts,
			applicationError{Type: "internal", Message: "no such table", Permanent: true},
		},
		{
			"a replay that differs from its record is final", &divergedError{"step 3 is another one"}, 1,
			applicationError{Type: "diverged", Message: "step 3 is another one", Permanent: true},
		},
		{
			"a recorded failure is not tried again", &finalError{transient}, 1,
			applicationError{Type: "overloaded", Message: "the vendor is overloaded", Benign: true, Permanent: true},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var app *temporal.ApplicationError
			if err := toTemporal(t.Context(), tt.err, tt.attempt); !errors.As(err, &app) {
				t.Fatalf("%v is not an application error", err)
			}
			got := applicationError{
				Type: app.Type(), Message: app.Message(), Permanent: app.NonRetryable(),
				Benign: app.Category() == temporal.ApplicationErrorCategoryBenign,
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("the application error differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorsOfACancelledAttempt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := toTemporal(ctx, context.Canceled, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's own error, which Temporal knows", err)
	}
	if err := toTemporal(ctx, pipeline.Errorf(pipeline.Cancelled, "stopped"), 1); !temporal.IsCanceledError(err) {
		t.Errorf("got %v, want a cancellation", err)
	}
	if got := kindOfFailure(ctx, errors.New("read: connection closed")); got != pipeline.Cancelled {
		t.Errorf("the attempt is recorded as %s, want %s", got, pipeline.Cancelled)
	}
}

func TestMessagesAreShort(t *testing.T) {
	t.Parallel()
	var app *temporal.ApplicationError
	err := toTemporal(t.Context(), pipeline.Errorf(pipeline.BadRequest, "%s", strings.Repeat("long ", 10_000)), 1)
	if !errors.As(err, &app) {
		t.Fatal(err)
	}
	if len(app.Message()) > 1000 {
		t.Errorf("the message has %d bytes; Temporal cuts failures at 4 KiB", len(app.Message()))
	}
}

func TestRetryDelays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		attempt := rapid.Int32Range(1, 20).Draw(t, "attempt")
		after := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "Retry-After"))
		got := retryDelay(after, attempt)
		low, high := after, after+after/10+1
		if after == 0 {
			full := time.Second << min(attempt-1, 5)
			low, high = full/2, full
		}
		if got < low || got > high {
			t.Fatalf("attempt %d with Retry-After %s waits %s, want %s to %s", attempt, after, got, low, high)
		}
	})
}
