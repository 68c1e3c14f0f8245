package api

import (
	"net/http"

	"precis/internal/api/wire"
	"precis/internal/service"
)

// The problem codes of the API beside those of the service.
const (
	codeUnauthorized     wire.Code = "unauthorized"
	codeRateLimited      wire.Code = "rate_limited"
	codeTimeout          wire.Code = "timeout"
	codeMethodNotAllowed wire.Code = "method_not_allowed"
	codeMediaType        wire.Code = "unsupported_media_type"
	codeNotAcceptable    wire.Code = "not_acceptable"
	codeKeyReused        wire.Code = "idempotency_key_reused"
	codeKeyBusy          wire.Code = "idempotency_key_busy"
	codeKeyLost          wire.Code = "idempotency_answer_lost"
)

// codes are all problem codes with their HTTP status and their documentation.
var codes = []struct {
	code   wire.Code
	status int
	about  string
}{
	{service.CodeInvalid, http.StatusUnprocessableEntity, "The request is invalid, whatever the state; " +
		"`errors` names the fields at fault. The status is 400 when the body is not JSON."},
	{codeUnauthorized, http.StatusUnauthorized, "The API key is missing, unknown, revoked or expired."},
	{
		service.CodeForbidden, http.StatusForbidden,
		"The key's scope is not enough. Or there are no keys, and the request is from another site, for another " +
			"host, or came through a proxy.",
	},
	{
		service.CodeQuota, http.StatusForbidden,
		"The tenant has stored as much as its quota allows; `detail` says which quota. Trying again does not help: " +
			"an operator can raise the quota.",
	},
	{service.CodeNotFound, http.StatusNotFound, "It does not exist, or belongs to another tenant."},
	{
		codeMethodNotAllowed, http.StatusMethodNotAllowed,
		"The path does not have this method; the header `Allow` lists the methods that it has.",
	},
	{codeNotAcceptable, http.StatusNotAcceptable, "`Accept` asks for something other than JSON."},
	{
		service.CodeReplyOpen, http.StatusConflict,
		"The agent's model is generating a reply: end the reply, or wait for its lease to expire.",
	},
	{
		service.CodeReplyEnded, http.StatusConflict,
		"The reply was already ended. The messages of this request would be stored twice.",
	},
	{service.CodeRunActive, http.StatusConflict, "A run of the conversation has not ended."},
	{service.CodeStale, http.StatusConflict, "The conversation has changed since the caller last read it."},
	{service.CodeNothingToUndo, http.StatusConflict, "No compaction is in effect: the context is the full history."},
	{
		service.CodeConflict, http.StatusConflict,
		"The request contradicts what is stored; `detail` says how.",
	},
	{codeKeyBusy, http.StatusConflict, "A request with this idempotency key is in progress: try again in a moment."},
	{codeKeyLost, http.StatusConflict, "The earlier request with this idempotency key took effect, and its answer " +
		"was lost: read the current state before you send the request again, with another key."},
	{
		service.CodeTooLarge, http.StatusRequestEntityTooLarge,
		"The body, or one message in it, is too large.",
	},
	{codeMediaType, http.StatusUnsupportedMediaType, "The body's media type is not `application/json`."},
	{
		codeKeyReused, http.StatusUnprocessableEntity,
		"The idempotency key was used with another request less than a day ago.",
	},
	{codeRateLimited, http.StatusTooManyRequests, "The tenant sends too many requests, or has too many in progress, " +
		"or an address sends too many bad keys; the header `Retry-After` says how many seconds to wait."},
	{
		service.CodeInternal, http.StatusInternalServerError,
		"An internal error of precis. The log has the reason under the request's id.",
	},
	{
		service.CodeUnavailable, http.StatusServiceUnavailable,
		"The database or Temporal is not reachable, or the server is stopping: try again later.",
	},
	{
		codeTimeout, http.StatusGatewayTimeout,
		"The request took longer than the server allows. It may still take effect.",
	},
}

func statusOf(code wire.Code) int {
	for _, c := range codes {
		if c.code == code {
			return c.status
		}
	}
	return http.StatusInternalServerError
}

func codeOf(status int) wire.Code {
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
