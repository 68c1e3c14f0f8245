package llm

import (
	"regexp"
	"strings"
)

// What the texts of errors say, in lower case.
var (
	clientTimeoutText = anyOf(
		`deadline exceeded`, `timed out`, `i/o timeout`, `client\.timeout`, `timeout awaiting`, `handshake timeout`,
	)
	clientCancelledText = anyOf(
		`context canceled`, `operation was canceled`, `request canceled`,
	)
	clientNetworkText = anyOf(
		`connection (refused|reset|closed|aborted)`, `broken pipe`, `no such host`, `\beof\b`, `unexpected eof`,
		`dial (tcp|udp|unix)`, `network is unreachable`, `no route to host`, `server closed`, `tls:`, `x509:`,
		`malformed http`, `stream error`, `goaway`, `socket hang up`, `econn`, `lookup `,
	)

	quotaText = anyOf(
		`insufficient.{0,3}(quota|balance|credit|fund)`, `credit balance is too low`, `exceeded your current quota`,
		`billing details`, `billing hard limit`, `account is not active`, `payment required`,
		`(out of|no|requires more|not enough) credits`, `can only afford`, `prepa(id|yment) credits`,
		`(spend|spending|usage) limits? (is |was |has been )?(reached|exceeded)`, `specified api usage limits`,
		`please recharge`, `account balance`, `monthly (spend|usage|limit)`, `balance is not enough`, `overdue`,
		`top up`,
	)
	// perMinuteText keeps a text that mentions billing among the rate limits: Google says both in one sentence.
	perMinuteText = anyOf(
		`per.?(minute|min|second|hour)\b`, `\bper day\b`, `please retry in`, `try again in \d`,
	)
	refusedText = anyOf(
		`content.?filter`, `content management policy`, `responsible ai`,
		`safety (system|polic|reasons|filter|setting)`, `flagged (as|for|by)`, `was flagged`,
		`(usage|content|use) polic(y|ies)`, `violat\w* .{0,40}polic`, `prohibited content`, `inappropriate content`,
		`requires moderation`, `considered high risk`, `unsafe content`, `sensitive content`,
		`blocked by .{0,20}(safety|filter|guard)`, `guardrail`,
	)
	tooLargeForRateText = anyOf(
		`request too large for .{0,120}requested \d`, `long context beta is not yet available`,
		`extra usage is required for long context`,
		`number of request tokens has exceeded your .{0,20}rate limit by itself`,
	)
	rateText = anyOf(
		`rate.?limit`, `too many requests`, `throttl`, `tokens per.(min|minute|day|hour|second)`,
		`requests per.(min|minute|day|hour|second)`, `\b[tr]p[mdh]\b`, `per.minute`, `please wait before`,
		`try again in \d`, `concurrency limit`, `too many concurrent`,
	)
	// outputLimitText is about the room for the answer alone, which the request asked for wrongly.
	outputLimitText = anyOf(
		`maximum allowed number of output tokens`, `supports at most \d+ completion tokens`,
		`max_(completion_|output_)?tokens.{0,40}(must|should|is too large|too large|at `+
			`least|greater|less|invalid|exceeds|not supported)`,
		`max_tokens: `, `maxoutputtokens`, `maxtokens`,
	)
	overflowText = anyOf(
		`prompt( text)? (is )?too long`, `input (is|was) too long`, `input length and .?max_tokens.? exceed`,
		`(maximum|max|model'?s?) (context|prompt|input)[ -]?(window|length|size|tokens)`,
		`maximum (allowed )?input length`,
		`exceed(s|ed|ing)? (the |your |its |this |model'?s? |max(imum)? |available |allowed |configured |total `+
			`)*(context|model token limit|prompt length|input token|token limit)`,
		`context (window|length|size|limit).{0,40}(exceed|overflow|too (long|large|small)|is full)`,
		`context.?overflow`, `exceeds the (maximum|limit).{0,20}tokens`,
		`context (window|length|limit|size) of (only |this |the )?`, `larger than the (model|context)`,
		`longer than the (maximum )?(model|context)`, `greater than the context`, `overflows?.{0,20}context`,
		`context the overflows`, `reduce the length of`, `prompt contains \d+ tokens`, `input token count`,
		`prompt token count`, `too many (input |prompt )?tokens`, `range of input length`,
		`exceeds max(imum)? (length|context|input|prompt|sequence)`, `total number of tokens in the prompt`,
		`tokens? \+ .{0,3}max_new_tokens`, `sequence length`, `input_tokens.{0,30}exceed`,
		`token limit (exceeded|reached)`, `exceeds the limit of \d+`, `input tokens exceed`,
		`maximum number of (input )?tokens`,
	)
	bytesText = anyOf(
		`(request|body|payload|content|entity|message|header|image|file|document)( entity| body| size)? (is `+
			`)?(too|exceeds?( the)?( maximum)?) (large|size|allowed)`,
		`exceeds? (the )?(maximum |max )?(allowed )?(request |body |payload |content )?size`, `exceeds? \d+ ?mb`,
		`size limit`, `exceeds? .{0,30}\d+ bytes`, `bytes maximum`, `string too long`, `\d+ bytes > \d+`,
		`request size`,
	)
	malformedHistoryText = anyOf(
		`tool_use.{0,4} ids? (were|was)? ?found without`, `tool_use_id`, `tool_result.{0,4} block`,
		`tool_use.{0,4} (block|ids must)`, `corresponding .?tool_`, `tool_calls?'? must be followed`,
		`tool_call_ids? `, `role '?"?tool'?"? must`, `'tool_calls' of previous`, `no tool (call|output) found`,
		`(function|tool) (call|response|result)s? .{0,60}(turn|parts|immediately|previous|preceding|missing|mismatch)`,
		`toolresult`, `tooluse`, `thought_signature`, "`?thinking`?.{0,40}block", "`signature`",
		`invalid signature`, `required following item`, `item with id .{0,80}not found`, `reasoning_content`,
		`text content blocks must`, `non-?empty content`, `content (field )?(cannot|must not|can't) be empty`,
		`must be non-?empty`, `empty (content|text|message)`, `must have a text parameter`, `roles? must alternate`,
		`alternate between`, `successive (user|assistant)`, `consecutive`, `first message must`, `last role`,
		`must (start|begin|end) with a? ?.?user`, `unexpected role`, `role .{0,12}is not (supported|allowed)`,
		`assistant message prefill`, `trailing whitespace`, `top-level .system`, `blocks with cache_control`,
		`cache_control`, `could not process (image|document|pdf)`, `expected a string, got null`, `not valid json`,
		`surrogate`, `invalid (escape|unicode|utf)`, `extra inputs are not permitted`,
		`input tag .{0,80}does not match`, `messages[.\[]\d+`, `contents?[.\[]\d+`, `'messages'`,
		`invalid type for`,
	)
	modelText = anyOf(
		`model[^.]{0,90}(not found|does not exist|doesn't exist|not exist|is not supported|unknown|not `+
			`available|no longer|deprecated|retired|decommissioned|is invalid|is not a valid|not a valid model)`,
		`no such model`, `unknown model`, `invalid model`, `(could not|cannot|unable to) find .{0,20}model`,
		`no endpoints found`, `not have access to (the )?model`, `^model: `, `model identifier is invalid`,
		`on-demand throughput`,
	)
	authText = anyOf(
		`api.?key (not valid|is invalid|expired|not found|is missing|required)`,
		`(invalid|incorrect|missing|no|expired) (x-)?api.?key`, `invalid (auth|bearer|token|credential)`,
		`unauthori[sz]ed`, `authentication (failed|required)`, `no auth credentials`, `expired token`,
		`organization has been disabled`,
	)
	overloadedText = anyOf(
		`overloaded`, `over capacity`, `at capacity`, `server is busy`, `temporarily unavailable`,
		`service unavailable`, `high demand`, `no available (server|channel|account|instance|worker)`,
		`model is (currently )?(loading|busy)`, `insufficient_system_resource`,
	)
	gatewayTimeoutText = anyOf(
		`time-?out`, `timed out`, `deadline exceeded`,
	)
)

// anyOf matches any of the patterns.
func anyOf(patterns ...string) *regexp.Regexp { return regexp.MustCompile(strings.Join(patterns, "|")) }
