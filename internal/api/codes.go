package api

import (
	"net/http"

	"precis/internal/service"
)

// The codes that the API has beside those of the service.
const (
	codeUnauthorized     service.Code = "unauthorized"
	codeRateLimited      service.Code = "rate_limited"
	codeTimeout          service.Code = "timeout"
	codeMethodNotAllowed service.Code = "method_not_allowed"
	codeMediaType        service.Code = "unsupported_media_type"
	codeNotAcceptable    service.Code = "not_acceptable"
	codeKeyReused        service.Code = "idempotency_key_reused"
	codeKeyBusy          service.Code = "idempotency_key_busy"
	codeKeyLost          service.Code = "idempotency_answer_lost"
)

// codes are all there are, with their status and what they mean: for the status line, and for the documentation.
var codes = []struct {
	code   service.Code
	status int
	about  string
}{
	{service.CodeInvalid, http.StatusUnprocessableEntity, "The request cannot be right, whatever the state; " +
		"`errors` names the fields at fault. The status is 400 when the body is no JSON."},
	{codeUnauthorized, http.StatusUnauthorized, "No API key was given, or none that works."},
	{
		service.CodeForbidden, http.StatusForbidden,
		"The key may not do this; or there are no keys and the request comes from another site than this machine's " +
			"own.",
	},
	{service.CodeNotFound, http.StatusNotFound, "There is no such thing, or it is another tenant's."},
	{
		codeMethodNotAllowed, http.StatusMethodNotAllowed,
		"The path is there, the method is not; the header `Allow` has those that are.",
	},
	{codeNotAcceptable, http.StatusNotAcceptable, "`Accept` asks for something other than JSON."},
	{
		service.CodeReplyOpen, http.StatusConflict,
		"The agent's model is generating: end the reply, or wait for its lease to expire.",
	},
	{
		service.CodeReplyEnded, http.StatusConflict,
		"The reply has been ended before; what came with this end would be stored twice.",
	},
	{service.CodeRunActive, http.StatusConflict, "A compaction of the conversation has not ended."},
	{service.CodeStale, http.StatusConflict, "What the caller believes of the conversation is not what it holds."},
	{service.CodeNothingToUndo, http.StatusConflict, "No compaction counts: the context is the full history already."},
	{
		service.CodeConflict, http.StatusConflict,
		"What is there contradicts what was asked, in the way that `detail` tells.",
	},
	{codeKeyBusy, http.StatusConflict, "A request with this idempotency key is under way: try again in a moment."},
	{codeKeyLost, http.StatusConflict, "The earlier request with this idempotency key took effect and its answer " +
		"was lost: read what is there before you send it again, with another key."},
	{
		service.CodeTooLarge, http.StatusRequestEntityTooLarge,
		"The body, or one message in it, is larger than what is taken.",
	},
	{codeMediaType, http.StatusUnsupportedMediaType, "The body is not declared as `application/json`."},
	{
		codeKeyReused, http.StatusUnprocessableEntity,
		"The idempotency key was used with another request less than a day ago.",
	},
	{codeRateLimited, http.StatusTooManyRequests, "The tenant has sent too many requests, or has too many open; " +
		"the header `Retry-After` says how many seconds to wait."},
	{
		service.CodeInternal, http.StatusInternalServerError,
		"A fault of precis. The log has the reason under the request's id.",
	},
	{
		service.CodeUnavailable, http.StatusServiceUnavailable,
		"The database or Temporal cannot be reached, or the server is stopping: the same request may pass later.",
	},
	{
		codeTimeout, http.StatusGatewayTimeout,
		"The request took longer than the server works on one. What it began may still take effect.",
	},
}

func statusOf(code service.Code) int {
	for _, c := range codes {
		if c.code == code {
			return c.status
		}
	}
	return http.StatusInternalServerError
}

func codeOf(status int) service.Code {
	switch status {
	case http.StatusBadRequest:
		return service.CodeInvalid
	case http.StatusRequestTimeout:
		return codeTimeout
	}
	for _, c := range codes {
		if c.status == status {
			return c.code
		}
	}
	if status < http.StatusInternalServerError {
		return service.CodeInvalid
	}
	return service.CodeInternal
}
