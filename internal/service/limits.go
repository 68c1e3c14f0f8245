package service

import (
	"encoding/json"
	"fmt"

	"precis/internal/api/wire"
	"precis/internal/contract"
	"precis/internal/store"
	"precis/pipeline"
)

// MaxPageBytes bounds a page of messages: a page of large messages ends early.
const MaxPageBytes = 16 << 20

// listed returns a run as it is in a list: without its attempts, and with a focus of bounded size also if it was
// requested before there was a limit.
func listed(run wire.Run) wire.Run {
	run.Steps, run.Focus = nil, pipeline.Truncate(run.Focus, contract.MaxFocusBytes)
	return run
}

// checkMerged returns an error for metadata or settings that a merge patch has made larger than their limit. The
// request alone is checked by the API. What was stored before there was a limit can be made smaller.
func checkMerged(field string, was, now json.RawMessage) error {
	limit := contract.LimitOf(field).Max
	if len(now) <= limit || len(now) < len(was) {
		return nil
	}
	return &Error{
		Code: CodeTooLarge, Field: field,
		Detail: fmt.Sprintf("would have %d bytes with this change, and the maximum is %d: remove keys by setting them "+
			"to null", len(now), limit),
	}
}

// tooManyKeys is the error for another key of the live state of a conversation that has as many as it can have.
func tooManyKeys(ref store.ConversationRef) error {
	return &Error{
		Code: CodeTooLarge, Field: "key",
		Detail: fmt.Sprintf("conversation %q has %d keys of live state, which is the maximum: remove one first", ref.ID,
			contract.MaxStateKeys),
	}
}
