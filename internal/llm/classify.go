package llm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"syscall"

	"precis/pipeline"
)

// Classify says which kind of failure a vendor's answer is. vendor is its name, or its type; status is 0
// when no answer came, and then cause, or body in its place, tells why. It never returns nil.
//
// The status decides where it can only mean one thing; then the vendor's own codes, wherever in the body
// they are; then the text. Texts are read with their exclusions first: a rate limit that speaks of tokens
// is no overflow, and neither is Go's own "context deadline exceeded".
//
// The error's Message names the kind, the status, the vendor's code, the figures, and for faults that a
// person has to mend an excerpt of the vendor's words; never a key, and no text of the conversation.
func Classify(vendor string, status int, header http.Header, body []byte, cause error) *pipeline.Error {
	if status == 0 && len(body) == 0 {
		if e := fromCause(vendor, cause); e != nil {
			return e
		}
	}
	f := readFacts(body)
	f.vendor = vendor
	if t := header.Get("X-Amzn-Errortype"); t != "" {
		// Bedrock has the error's name in a header, with an address after a colon.
		t, _, _ = strings.Cut(t, ":")
		f.addCode(t)
	}
	f.status = status
	if f.status == 0 || (f.status >= 200 && f.status < 300) {
		f.status = f.innerStatus // an error inside of an answer that began well names its status itself
	}

	kind := f.kind()
	e := &pipeline.Error{Kind: kind, Status: status}
	if kind == pipeline.InputTokensExceeded {
		e.ActualTokens, e.LimitTokens = f.figures()
	}
	e.RetryAfter = retryAfter(header, f)
	e.Message = f.message(e)
	if status == 0 {
		e.Cause = plainCause(cause)
	}
	return e
}

// kind applies the rules in order. The first that fits decides.
func (f *facts) kind() pipeline.ErrorKind {
	for _, r := range rules {
		if r.when(f) {
			return r.kind
		}
	}
	return byStatus(f.status)
}

// rule is one line of the table: what it says, and when.
type rule struct {
	kind pipeline.ErrorKind
	when func(*facts) bool
}

// rules is the order of the classification. Statuses that mean one thing stand in byStatus, which is asked
// last: a 500 that says "maximum context length" is an overflow all the same.
var rules = []rule{
	// No answer came, only the words of a client library.
	{pipeline.Timeout, func(f *facts) bool { return f.bare() && f.says(reClientTimeout) }},
	{pipeline.Cancelled, func(f *facts) bool { return f.bare() && f.says(reClientCancelled) }},
	{pipeline.Network, func(f *facts) bool { return f.bare() && f.says(reClientNetwork) }},

	// What a person has to mend, whatever the status that it comes with.
	{pipeline.RateLimited, func(f *facts) bool { return f.is(codesGoogleRate...) && f.retryDelay > 0 }},
	{pipeline.Quota, func(f *facts) bool { return f.status == http.StatusPaymentRequired || f.is(codesQuota...) }},
	{pipeline.Quota, func(f *facts) bool { return f.says(reQuota) && !f.says(rePerMinute) }},
	{pipeline.Refused, func(f *facts) bool { return f.is(codesRefused...) || f.says(reRefused) }},

	// A request that alone is over a rate limit is too large: waiting never helps it.
	{pipeline.InputTokensExceeded, func(f *facts) bool { return f.says(reTooLargeForRate) }},
	{pipeline.RateLimited, func(f *facts) bool {
		return f.is(codesRate...) || f.status == http.StatusTooManyRequests && !f.is(codesOverloaded...) &&
			!f.says(reOverloaded)
	}},
	{pipeline.RateLimited, func(f *facts) bool { return f.says(reRate) && f.status != http.StatusServiceUnavailable }},

	{pipeline.InputTokensExceeded, func(f *facts) bool { return f.is(codesOverflow...) }},
	{pipeline.BadRequest, func(f *facts) bool { return f.says(reOutputLimit) && !f.says(reOverflow) }},
	{pipeline.InputTokensExceeded, func(f *facts) bool { return f.says(reOverflow) }},
	{pipeline.InputTooLarge, func(f *facts) bool {
		return f.status == http.StatusRequestEntityTooLarge || f.is(codesBytes...) || f.says(reBytes)
	}},
	{pipeline.MalformedHistory, func(f *facts) bool { return f.is(codesMalformed...) }},
	{pipeline.MalformedHistory, func(f *facts) bool { return f.status < 500 && f.says(reMalformedHistory) }},

	{pipeline.ModelNotFound, func(f *facts) bool { return f.is(codesModel...) }},
	{pipeline.ModelNotFound, func(f *facts) bool { return f.status < 500 && f.says(reModel) }},
	{pipeline.Auth, func(f *facts) bool { return f.is(codesAuth...) }},
	{pipeline.Auth, func(f *facts) bool {
		return (f.status == 0 || f.status == http.StatusBadRequest) && f.says(reAuth)
	}},

	{pipeline.Timeout, func(f *facts) bool { return f.is(codesTimeout...) }},
	{pipeline.Overloaded, func(f *facts) bool { return f.is(codesOverloaded...) }},
	{pipeline.Overloaded, func(f *facts) bool { return f.says(reOverloaded) }},
	{pipeline.Timeout, func(f *facts) bool { return (f.status == 0 || f.status >= 500) && f.says(reGatewayTimeout) }},
	{pipeline.ServerError, func(f *facts) bool { return f.status == 0 && f.is(codesServer...) }},
	{pipeline.ModelNotFound, func(f *facts) bool { return f.status == 0 && f.is("not_found_error", "not_found") }},
	{pipeline.BadRequest, func(f *facts) bool { return f.status == 0 && f.is(codesBadRequest...) }},
	// A JSON answer of a vendor's to a path that exists speaks of the model; a page or a bare text of the path.
	{pipeline.BadRequest, func(f *facts) bool { return f.status == http.StatusNotFound && !f.json }},
}

// byStatus is what a status means when nothing else was said.
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
	case http.StatusConflict, http.StatusTooEarly, 499: // 499: a proxy's word for a client that went away
		return pipeline.ServerError
	case http.StatusServiceUnavailable, 529: // 529 is Anthropic's
		return pipeline.Overloaded
	}
	if status >= 500 {
		return pipeline.ServerError
	}
	return pipeline.BadRequest
}

// The vendors' own codes, types and exception names, in lower case.
var (
	codesGoogleRate = []string{"resource_exhausted"}
	codesQuota      = []string{
		"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active",
		"insufficient_balance", "insufficient_credits", "credits_exhausted", "exceeded_current_quota_error",
		"contract_spend_limit_reached", "enforced_spend_limit_reached", "payment_required", "arrearage",
		"account_deactivated", "user_profile_not_billable",
		// 1113: Z.ai, balance used up
		"user_profile_billing_not_authorized", "access_terminated", "quota_exceeded", "1113",
	}
	codesRefused = []string{
		"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt",
		"content_filtered", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation",
		"data_inspection_failed", "datainspectionfailed", "prohibited_content", "content_moderation",
		"moderation_blocked",
		"1301", // Z.ai, unsafe content
	}
	// codesMalformed are about blocks that only the vendor can read, and where they stand: Anthropic's compaction, and
	// encrypted content of the Responses API.
	codesMalformed = []string{
		"compaction_block_ambiguous", "compaction_block_misplaced", "compaction_content_mismatch",
		"compaction_incomplete_turn", "compaction_signature_invalid", "compaction_too_many_tool_references",
		"compaction_tool_changes_mismatch", "invalid_encrypted_content",
	}
	codesRate = []string{
		"rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error", "rate_limit_reached",
		"ramp_limit_exceeded", "throttlingexception", "throttling", "too_many_requests", "toomanyrequestsexception",
		"resource_exhausted", "servicequotaexceededexception", "rate_limited", "requests_per_minute_exceeded",
		"throttling.ratequota",
	}
	codesOverflow = []string{
		"context_length_exceeded", "context_overflow", "exceed_context_size_error", "model_max_prompt_tokens_exceeded",
		"context_window_exceeded", "contextwindowexceedederror", "prompt_too_long", "max_tokens_exceeded_error",
		"model_context_window_exceeded",
		"context_length_error", "input_too_long", "prompt_tokens_exceeded", "1261", // 1261: Z.ai
	}
	codesBytes = []string{
		"request_too_large", "request_body_too_large_after_decoding", "string_above_max_length", "payload_too_large",
		"requestentitytoolarge", "request_entity_too_large", "body_too_large", "content_length_exceeded",
	}
	codesModel = []string{
		"model_not_found", "model_not_available", "resourcenotfoundexception", "unknown_model", "invalid_model",
		"deploymentnotfound", "model_decommissioned", "model_terms_required", "model_not_supported", "modelnotfound",
		"1211",
	}
	codesAuth = []string{
		"authentication_error", "permission_error", "invalid_api_key", "unauthenticated", "permission_denied",
		"api_key_invalid", "accessdeniedexception", "unrecognizedclientexception", "expiredtokenexception",
		"invalid_authentication_error", "invalid_authentication", "unauthorized", "invalid_organization",
		"api_key_service_blocked",
	}
	codesTimeout = []string{
		"timeout_error", "deadline_exceeded", "modeltimeoutexception", "request_timeout",
		"timeout",
	}
	codesOverloaded = []string{
		"overloaded_error", "engine_overloaded_error", "unavailable", "serviceunavailableexception",
		"modelnotreadyexception", "service_unavailable", "engine_overloaded", "overloaded", "compaction_unavailable",
		"slow_down", "1305",
	}
	codesServer = []string{
		"api_error", "server_error", "internal", "internal_error", "internal_server_error", "internalserverexception",
		"modelerrorexception", "upstream_error", "provider_error",
	}
	codesBadRequest = []string{
		"invalid_request_error", "invalid_argument", "validationexception",
		"failed_precondition", "bad_request",
	}
)

// The texts, matched against lower case.
var (
	reClientTimeout = regexp.MustCompile(
		`deadline exceeded|timed out|i/o timeout|client\.timeout|timeout awaiting|handshake timeout`)
	reClientCancelled = regexp.MustCompile(`context canceled|operation was canceled|request canceled`)
	reClientNetwork   = regexp.MustCompile(
		`connection (refused|reset|closed|aborted)|broken pipe|no such host|\beof\b|unexpected eof|dial (tcp|udp|unix)|` +
			`network is unreachable|no route to host|server closed|tls:|x509:|malformed http|stream ` +
			`error|goaway|socket hang up|econn|lookup `)

	reQuota = regexp.MustCompile(
		`insufficient.{0,3}(quota|balance|credit|fund)|credit balance is too low|exceeded your current quota|` +
			`billing details|billing hard limit|account is not active|payment required|(out of|no|requires more|not ` +
			`enough) credits|can only afford|` +
			`prepa(id|yment) credits|(spend|spending|usage) limits? (is |was |has been )?(reached|exceeded)|specified ` +
			`api usage limits|please recharge|` +
			`account balance|monthly (spend|usage|limit)|balance is not enough|overdue|top up`)
	// rePerMinute keeps a text that mentions billing among the rate limits: Google says both in one sentence.
	rePerMinute = regexp.MustCompile(`per.?(minute|min|second|hour)\b|\bper day\b|please retry in|try again in \d`)
	reRefused   = regexp.MustCompile(
		`content.?filter|content management policy|responsible ai|safety (system|polic|reasons|filter|setting)|` +
			`flagged (as|for|by)|was flagged|(usage|content|use) polic(y|ies)|violat\w* .{0,40}polic|prohibited ` +
			`content|inappropriate content|` +
			`requires moderation|considered high risk|unsafe content|sensitive content|blocked by .{0,` +
			`20}(safety|filter|guard)|guardrail`)
	reTooLargeForRate = regexp.MustCompile(
		`request too large for .{0,120}requested \d|long context beta is not yet available|` +
			`extra usage is required for long context|number of request tokens has exceeded your .{0,20}rate limit by ` +
			`itself`)
	reRate = regexp.MustCompile(`rate.?limit|too many requests|throttl|tokens ` +
		`per.(min|minute|day|hour|second)|requests per.(min|minute|day|hour|second)|` +
		`\b[tr]p[mdh]\b|per.minute|please wait before|try again in \d|concurrency limit|too many concurrent`)
	// reOutputLimit is about the room for the answer alone, which the request asked for wrongly.
	reOutputLimit = regexp.MustCompile(
		"maximum allowed number of output tokens|supports at most \\d+ completion tokens|" +
			"max_(completion_|output_)?tokens.{0,40}(must|should|is too large|too large|at " +
			"least|greater|less|invalid|exceeds|not supported)|" +
			"max_tokens: |maxoutputtokens|maxtokens")
	reOverflow = regexp.MustCompile(
		"prompt( text)? (is )?too long|input (is|was) too long|input length and .?max_tokens.? exceed|" +
			`(maximum|max|model'?s?) (context|prompt|input)[ -]?(window|length|size|tokens)|maximum (allowed )?input ` +
			`length|` +
			`exceed(s|ed|ing)? (the |your |its |this |model'?s? |max(imum)? |available |allowed |configured |total ` +
			`)*(context|model token limit|prompt length|input token|token limit)|` +
			`context (window|length|size|limit).{0,40}(exceed|overflow|too (long|large|small)|is ` +
			`full)|context.?overflow|exceeds the (maximum|limit).{0,20}tokens|` +
			`context (window|length|limit|size) of (only |this |the )?|larger than the (model|context)|longer than ` +
			`the (maximum )?(model|context)|greater than the context|overflows?.{0,20}context|context the overflows|` +
			`reduce the length of|prompt contains \d+ tokens|input token count|prompt token count|too many (input ` +
			`|prompt )?tokens|range of input length|` +
			`exceeds max(imum)? (length|context|input|prompt|sequence)|total number of tokens in the prompt|tokens? ` +
			`\+ .{0,3}max_new_tokens|` +
			`sequence length|input_tokens.{0,30}exceed|token limit (exceeded|reached)|exceeds the limit of \d+|input ` +
			`tokens exceed|maximum number of (input )?tokens`)
	reBytes = regexp.MustCompile(`(request|body|payload|content|entity|message|header|image|file|document)( ` +
		`entity| body| size)? (is )?(too|exceeds?( the)?( maximum)?) (large|size|allowed)|` +
		`exceeds? (the )?(maximum |max )?(allowed )?(request |body |payload |content )?size|exceeds? \d+ ?mb|size ` +
		`limit|exceeds? .{0,30}\d+ bytes|bytes maximum|` +
		`string too long|\d+ bytes > \d+|request size`)
	reMalformedHistory = regexp.MustCompile("tool_use.{0,4} ids? (were|was)? ?found " +
		"without|tool_use_id|tool_result.{0,4} block|tool_use.{0,4} (block|ids must)|corresponding .?tool_|" +
		`tool_calls?'? must be followed|tool_call_ids? |role '?"?tool'?"? must|'tool_calls' of previous|no tool ` +
		`(call|output) found|` +
		`(function|tool) (call|response|result)s? .{0,` +
		`60}(turn|parts|immediately|previous|preceding|missing|mismatch)|toolresult|tooluse|thought_signature|` +
		"`?thinking`?.{0,40}block|`signature`|invalid signature|required following item|item with id .{0,80}not " +
		"found|reasoning_content|" +
		`text content blocks must|non-?empty content|content (field )?(cannot|must not|can't) be empty|must be ` +
		`non-?empty|empty (content|text|message)|must have a text parameter|` +
		`roles? must alternate|alternate between|successive (user|assistant)|consecutive|first message must|last ` +
		`role|must (start|begin|end) with a? ?.?user|` +
		`unexpected role|role .{0,12}is not (supported|allowed)|assistant message prefill|trailing ` +
		`whitespace|top-level .system|` +
		`blocks with cache_control|cache_control|could not process (image|document|pdf)|expected a string, got null|` +
		`not valid json|surrogate|invalid (escape|unicode|utf)|extra inputs are not permitted|input tag .{0,` +
		`80}does not match|` +
		`messages[.\[]\d+|contents?[.\[]\d+|'messages'|invalid type for`)
	reModel = regexp.MustCompile(`model[^.]{0,90}(not found|does not exist|doesn't exist|not exist|is not ` +
		`supported|unknown|not available|no longer|deprecated|retired|decommissioned|is invalid|is not a ` +
		`valid|not a valid model)|` +
		`no such model|unknown model|invalid model|(could not|cannot|unable to) find .{0,20}model|no endpoints ` +
		`found|not have access to (the )?model|^model: |model identifier is invalid|on-demand throughput`)
	reAuth = regexp.MustCompile(`api.?key (not valid|is invalid|expired|not found|is ` +
		`missing|required)|(invalid|incorrect|missing|no|expired) (x-)?api.?key|` +
		`invalid (auth|bearer|token|credential)|unauthori[sz]ed|authentication (failed|required)|no auth ` +
		`credentials|expired token|organization has been disabled`)
	reOverloaded = regexp.MustCompile(
		`overloaded|over capacity|at capacity|server is busy|temporarily unavailable|service unavailable|high demand|` +
			`no available (server|channel|account|instance|worker)|model is (currently ` +
			`)?(loading|busy)|insufficient_system_resource`)
	reGatewayTimeout = regexp.MustCompile(`time-?out|timed out|deadline exceeded`)
)

// fromCause tells an error of the connection by its type, before its words.
func fromCause(vendor string, cause error) *pipeline.Error {
	if cause == nil {
		return nil
	}
	kind, what := pipeline.ErrorKind(""), ""
	var netErr net.Error
	var dnsErr *net.DNSError
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		kind, what = pipeline.Timeout, "no complete answer within the deadline"
	case errors.Is(cause, context.Canceled):
		kind, what = pipeline.Cancelled, "the call was cancelled"
	case errors.As(cause, &netErr) && netErr.Timeout():
		kind, what = pipeline.Timeout, "the connection timed out"
	case errors.As(cause, &dnsErr):
		kind, what = pipeline.Network, "the host name does not resolve, check the vendor's base URL"
	case errors.Is(cause, syscall.ECONNREFUSED):
		kind, what = pipeline.Network, "connection refused, check the vendor's base URL and that it is up"
	case errors.Is(cause, io.ErrUnexpectedEOF), errors.Is(cause, io.EOF), errors.Is(cause, syscall.ECONNRESET),
		errors.Is(cause, syscall.EPIPE):
		kind, what = pipeline.Network, "the connection broke off before the answer was complete"
	}
	if kind == "" {
		f := readFacts([]byte(plainCause(cause).Error()))
		kind, what = f.kind(), "no answer came"
		if kind == pipeline.ServerError {
			kind = pipeline.Network // it came from the client's side of the wire
		}
	}
	return &pipeline.Error{Kind: kind, Message: fmt.Sprintf("%s: %s", vendor, what), Cause: plainCause(cause)}
}

// plainCause takes the address out of an error of net/http: it may hold a key as a query parameter.
func plainCause(cause error) error {
	var urlErr *url.Error
	if errors.As(cause, &urlErr) {
		cause = urlErr.Err
	}
	if cause == nil {
		return nil
	}
	return cause
}
