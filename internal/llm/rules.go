package llm

import (
	"net/http"
	"regexp"
	"slices"

	"precis/pipeline"
)

// rule names the kind of an error that meets a condition.
type rule struct {
	kind pipeline.ErrorKind
	when condition
}

// rules is the classification: the first rule that applies decides. byStatus decides when none does. It comes last
// because a status says least: a 500 with the text "maximum context length" is an overflow.
var rules = []rule{
	// No server answered: these are the words of a client library.
	{pipeline.Timeout, all(noAnswer, text(clientTimeoutText))},
	{pipeline.Cancelled, all(noAnswer, text(clientCancelledText))},
	{pipeline.Network, all(noAnswer, text(clientNetworkText))},

	// Faults that a person has to mend, whatever their status.
	{pipeline.RateLimited, all(code(googleRateCodes), delayGiven)},
	{pipeline.Quota, oneOf(status(http.StatusPaymentRequired), code(quotaCodes))},
	{pipeline.Quota, all(text(quotaText), not(text(perMinuteText)))},
	{pipeline.Refused, oneOf(code(refusedCodes), text(refusedText))},

	// A request that exceeds a rate limit on its own is too large: waiting never helps.
	{pipeline.InputTokensExceeded, text(tooLargeForRateText)},
	{pipeline.RateLimited, code(rateCodes)},
	{pipeline.RateLimited, all(status(http.StatusTooManyRequests), not(code(overloadedCodes)),
		not(text(overloadedText)))},
	{pipeline.RateLimited, all(text(rateText), not(status(http.StatusServiceUnavailable)))},

	{pipeline.InputTokensExceeded, code(overflowCodes)},
	{pipeline.BadRequest, all(text(outputLimitText), not(text(overflowText)))},
	{pipeline.InputTokensExceeded, text(overflowText)},
	{pipeline.InputTooLarge, oneOf(status(http.StatusRequestEntityTooLarge), code(bytesCodes), text(bytesText))},
	{pipeline.MalformedHistory, code(malformedCodes)},
	{pipeline.MalformedHistory, all(clientFault, text(malformedHistoryText))},

	{pipeline.ModelNotFound, code(modelCodes)},
	{pipeline.ModelNotFound, all(clientFault, text(modelText))},
	{pipeline.Auth, code(authCodes)},
	{pipeline.Auth, all(oneOf(noStatus, status(http.StatusBadRequest)), text(authText))},

	{pipeline.Timeout, code(timeoutCodes)},
	{pipeline.Overloaded, oneOf(code(overloadedCodes), text(overloadedText))},
	{pipeline.Timeout, all(oneOf(noStatus, serverFault), text(gatewayTimeoutText))},
	{pipeline.ServerError, all(noStatus, code(serverCodes))},
	{pipeline.ModelNotFound, all(noStatus, code([]string{"not_found_error", "not_found"}))},
	{pipeline.BadRequest, all(noStatus, code(badRequestCodes))},
	// A JSON answer with status 404 is about the model; a page or a bare text is about the path.
	{pipeline.BadRequest, all(status(http.StatusNotFound), not(isJSON))},
}

// condition reports whether the facts of an error meet it.
type condition func(*facts) bool

func all(conditions ...condition) condition {
	return func(f *facts) bool {
		return !slices.ContainsFunc(conditions, func(c condition) bool { return !c(f) })
	}
}

func oneOf(conditions ...condition) condition {
	return func(f *facts) bool {
		return slices.ContainsFunc(conditions, func(c condition) bool { return c(f) })
	}
}

func not(c condition) condition { return func(f *facts) bool { return !c(f) } }

// code is met by an error with any of the codes.
func code(codes []string) condition {
	return func(f *facts) bool {
		return slices.ContainsFunc(f.codes, func(c string) bool { return slices.Contains(codes, c) })
	}
}

// text is met by an error whose text, in lower case, matches.
func text(re *regexp.Regexp) condition { return func(f *facts) bool { return re.MatchString(f.lower) } }

func status(s int) condition { return func(f *facts) bool { return f.status == s } }

func noStatus(f *facts) bool { return f.status == 0 }

// noAnswer is met when no server answered and there are only words.
func noAnswer(f *facts) bool { return f.status == 0 && !f.json }

func clientFault(f *facts) bool { return f.status < 500 }

func serverFault(f *facts) bool { return f.status >= 500 }

func delayGiven(f *facts) bool { return f.retryDelay > 0 }

func isJSON(f *facts) bool { return f.json }

// byStatus returns what a status means when no rule applies.
func byStatus(status int) pipeline.ErrorKind {
	switch status {
	case 0:
		return pipeline.ServerError
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return pipeline.Auth
	case http.StatusNotFound, http.StatusGone:
		return pipeline.ModelNotFound
	case http.StatusRequestTimeout, http.StatusGatewayTimeout, 522, 524: // the last two are Cloudflare's
		return pipeline.Timeout
	case http.StatusConflict, http.StatusTooEarly, 499: // 499: a proxy reports that the client disconnected
		return pipeline.ServerError
	case http.StatusServiceUnavailable, 529: // 529 is Anthropic's
		return pipeline.Overloaded
	}
	if status >= 500 {
		return pipeline.ServerError
	}
	return pipeline.BadRequest
}
