package llm

import (
	"errors"
	"testing"
	"time"

	"precis/pipeline"
)

// errorsByVendor are errors in the words of the vendors, with the kinds that they are.
var errorsByVendor = map[string]struct {
	vendor string
	status int
	body   string
	want   pipeline.ErrorKind
	limit  int
	retry  time.Duration
}{
	// Anthropic, compaction: the codes of its SDK.
	"AnthropicCompactionUnavailable": {"anthropic", 529, `{"type":"error","error":{"type":"overloaded_error",` +
		`"message":"Overloaded","details":{"error_code":"compaction_unavailable"}}}`, pipeline.Overloaded, 0, 0},
	"AnthropicBlockMisplaced": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"The block is not the first one.","details":{` +
		`"error_code":"compaction_block_misplaced"}}}`, pipeline.MalformedHistory, 0, 0},
	"AnthropicBlockAmbiguous": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"More than one block.","details":{` +
		`"error_code":"compaction_block_ambiguous"}}}`, pipeline.MalformedHistory, 0, 0},
	"AnthropicSignature": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"It does not verify.","details":{` +
		`"error_code":"compaction_signature_invalid"}}}`, pipeline.MalformedHistory, 0, 0},
	"AnthropicContentMismatch": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"It differs.","details":{` +
		`"error_code":"compaction_content_mismatch"}}}`, pipeline.MalformedHistory, 0, 0},
	"AnthropicIncompleteTurn": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"The turn is not finished.","details":{` +
		`"error_code":"compaction_incomplete_turn"}}}`, pipeline.MalformedHistory, 0, 0},
	"AnthropicNothingToSummarize": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"Nothing there.","details":{` +
		`"error_code":"compaction_nothing_to_summarize"}}}`, pipeline.BadRequest, 0, 0},
	"AnthropicBetaMissing": {
		"anthropic", 400, `{"type":"error","error":{` +
			`"type":"invalid_request_error","message":"compaction: requires anthropic-beta: compact-2026-09-04"}}`,
		pipeline.BadRequest, 0, 0,
	},
	"AnthropicBlockUnknown": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"messages.0.content.0: Input tag 'compaction' found using ` +
		`'type' does not match any of the expected tags"}}`, pipeline.MalformedHistory, 0, 0},
	"AnthropicTriggerTooSmall": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error",` +
		`"message":"context_management.edits.0.compact_20260112.trigger.input_tokens.value: Input should be ` +
		`greater than or equal to 50000"}}`, pipeline.BadRequest, 0, 0},
	"AnthropicNoPrefillEndsAssistant": {"anthropic", 400, `{"type":"error","error":{` +
		`"type":"invalid_request_error","message":"This model does not support assistant message prefill. The ` +
		`conversation must end with a user message."}}`, pipeline.MalformedHistory, 0, 0},

	// The Responses API.
	"ResponsesOverflow": {"openai", 400, `{"error":{"message":"Your input exceeds the context window ` +
		`of this model. Please adjust your input and try again.","type":"invalid_request_error",` +
		`"param":"input","code":"context_length_exceeded"}}`, pipeline.InputTokensExceeded, 0, 0},
	"ResponsesOverflowNoCode": {"openai", 400, `{"error":{"message":"Your input exceeds the context window ` +
		`of this model. Please adjust your input and try again.","type":"invalid_request_error",` +
		`"param":"input","code":null}}`, pipeline.InputTokensExceeded, 0, 0},
	"ResponsesNoOutput": {"openai", 400, `{"error":{"message":"No tool output found for function call ` +
		`call_abc.","type":"invalid_request_error","param":"input","code":null}}`, pipeline.MalformedHistory, 0, 0},
	"ResponsesNoCall": {
		"openai", 400, `{"error":{"message":"No tool call found for function call ` +
			`output with call_id call_abc.","type":"invalid_request_error","param":"input","code":null}}`,
		pipeline.MalformedHistory, 0, 0,
	},
	"ResponsesReasoningAlone": {"openai", 400, `{"error":{"message":"Item 'rs_1' of type 'reasoning' was ` +
		`provided without its required following item.","type":"invalid_request_error","param":"input",` +
		`"code":null}}`, pipeline.MalformedHistory, 0, 0},
	"ResponsesEncrypted": {
		"openai", 400, `{"error":{"message":"The encrypted content gAAA...= could ` +
			`not be verified. Reason: Encrypted content could not be decrypted or parsed.",` +
			`"type":"invalid_request_error","param":null,"code":"invalid_encrypted_content"}}`,
		pipeline.MalformedHistory, 0, 0,
	},
	"ResponsesCompactionTooBig": {"openai", 400, `{"error":{"message":"Invalid 'input[` +
		`1535].encrypted_content': string too long. Expected a string with maximum length 10485760, but got a ` +
		`string with length 17599352 instead.","type":"invalid_request_error","param":"input[` +
		`1535].encrypted_content","code":"string_above_max_length"}}`, pipeline.InputTooLarge, 0, 0},
	"ResponsesItemNotFound": {"openai", 404, `{"error":{"message":"Item with id 'rs_1' not found. Items ` +
		`are not persisted when store is set to false.","type":"invalid_request_error","param":"input",` +
		`"code":null}}`, pipeline.MalformedHistory, 0, 0},
	"ResponsesFailed": {
		"openai", 200,
		`{"error":{"code":"server_error","message":"The model failed to generate a response."}}`,
		pipeline.ServerError, 0, 0,
	},
	"ResponsesFailedRate": {"openai", 200, `{"error":{"code":"rate_limit_exceeded","message":"Rate ` +
		`limit reached for gpt-6. Please try again in 1.2s."}}`, pipeline.RateLimited, 0, 1200 * time.Millisecond},
	"ResponsesFailedPrompt": {"openai", 200, `{"error":{"code":"invalid_prompt","message":"Invalid ` +
		`prompt: we've limited access to this content for safety reasons."}}`, pipeline.Refused, 0, 0},
	"ResponsesBioPolicy": {
		"openai", 200,
		`{"error":{"code":"bio_policy","message":"This request cannot be completed."}}`, pipeline.Refused, 0, 0,
	},
	"ResponsesMisalignment": {
		"openai", 200,
		`{"error":{"code":"misalignment_policy_violation","message":"Stopped."}}`, pipeline.Refused, 0, 0,
	},
	"CompactNotServed": {"house", 404, `{"detail":"Not Found"}`, pipeline.ModelNotFound, 0, 0},

	// xAI.
	"XAICompactOverflow": {
		"xai", 400, `{"code":"Client specified an invalid argument","error":"This model's ` +
			`maximum prompt length is 500000 but the request contains 537812 tokens."}`,
		pipeline.InputTokensExceeded,
		500000, 0,
	},
	"XAIKey": {"xai", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API ` +
		`key provided: xa***12. You can obtain an API key from https://console.x.ai."}`, pipeline.Auth, 0, 0},
	"XAICredits": {"xai", 403, `{"code":"The caller does not have permission to execute the specified ` +
		`operation","error":"Your team has either used all available credits or reached its monthly spending ` +
		`limit."}`, pipeline.Quota, 0, 0},
	"XAIModel": {"xai", 404, `{"code":"Some requested entity was not found","error":"The model ` +
		`grok-9 does not exist or your team does not have access to it."}`, pipeline.ModelNotFound, 0, 0},

	// Google.
	"GoogleOverflow": {
		"google", 400, `{"error":{"code":400,"message":"The input token count (1196265) ` +
			`exceeds the maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}`,
		pipeline.InputTokensExceeded, 1048575, 0,
	},
	"GoogleKey": {"google", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a ` +
		`valid API key.","status":"INVALID_ARGUMENT","details":[{` +
		`"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID",` +
		`"domain":"googleapis.com"}]}}`, pipeline.Auth, 0, 0},
	"GoogleNoKey": {"google", 403, `{"error":{"code":403,"message":"Method doesn't allow ` +
		`unregistered callers (callers without established identity). Please use API Key or other form of API ` +
		`consumer identity to call this API.","status":"PERMISSION_DENIED"}}`, pipeline.Auth, 0, 0},
	"GoogleRate": {
		"google", 429, `{"error":{"code":429,"message":"You exceeded your current quota, ` +
			`please check your plan and billing details. Please retry in 35.9s.","status":"RESOURCE_EXHAUSTED",` +
			`"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"35s"}]}}`,
		pipeline.RateLimited, 0, 35 * time.Second,
	},
	"GoogleOverloaded": {
		"google", 503,
		`{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`,
		pipeline.Overloaded, 0, 0,
	},
	"GoogleDeadline": {"google", 504, `{"error":{"code":504,"message":"Deadline expired before ` +
		`operation could complete.","status":"DEADLINE_EXCEEDED"}}`, pipeline.Timeout, 0, 0},
	"GoogleInternal": {"google", 500, `{"error":{"code":500,"message":"An internal error has occurred. ` +
		`Please retry or report in https://developers.generativeai.google/guide/troubleshooting",` +
		`"status":"INTERNAL"}}`, pipeline.ServerError, 0, 0},
	"GoogleTurns": {
		"google", 400, `{"error":{"code":400,"message":"Please ensure that function call ` +
			`turn comes immediately after a user turn or after a function response turn.","status":"INVALID_ARGUMENT"}}`,
		pipeline.MalformedHistory, 0, 0,
	},
	"GoogleResponseParts": {"google", 400, `{"error":{"code":400,"message":"Please ensure that the number of ` +
		`function response parts is equal to the number of function call parts of the function call turn.",` +
		`"status":"INVALID_ARGUMENT"}}`, pipeline.MalformedHistory, 0, 0},
	"GoogleSignature": {"google", 400, `{"error":{"code":400,"message":"Function call is missing a ` +
		`thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}`, pipeline.MalformedHistory, 0, 0},
	"GoogleEmptyParts": {
		"google", 400, `{"error":{"code":400,"message":"* ` +
			`GenerateContentRequest.contents[2].parts: contents.parts must not be empty.","status":"INVALID_ARGUMENT"}}`,
		pipeline.MalformedHistory, 0, 0,
	},
	"GoogleModel": {
		"google", 404, `{"error":{"code":404,"message":"models/gemini-9 is not found for ` +
			`API version v1beta, or is not supported for generateContent.","status":"NOT_FOUND"}}`,
		pipeline.ModelNotFound, 0, 0,
	},
	"GoogleBytes": {"google", 400, `{"error":{"code":400,"message":"Request payload size exceeds the ` +
		`limit: 20971520 bytes.","status":"INVALID_ARGUMENT"}}`, pipeline.InputTooLarge, 0, 0},
	"GoogleOutputTooLarge": {"google", 400, `{"error":{"code":400,"message":"Unable to submit request because ` +
		`it has a maxOutputTokens value of 99999 but the supported range is from 1 (inclusive) to 65537 ` +
		`(exclusive).","status":"INVALID_ARGUMENT"}}`, pipeline.BadRequest, 0, 0},
	"GoogleLocation": {"google", 400, `{"error":{"code":400,"message":"User location is not supported ` +
		`for the API use.","status":"FAILED_PRECONDITION"}}`, pipeline.BadRequest, 0, 0},
}

// TestClassifyByVendor has the errors that came with the native compactions, the Responses API and Google's own
// protocol, each in the words of its vendor.
func TestClassifyByVendor(t *testing.T) {
	t.Parallel()
	for name, c := range errorsByVendor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Classify(c.vendor, c.status, nil, []byte(c.body), nil)
			if got.Kind != c.want || got.LimitTokens != c.limit || got.RetryAfter != c.retry {
				t.Errorf("%s, limit %d, retry after %v; want %s, %d, %v", got.Kind, got.LimitTokens, got.RetryAfter,
					c.want, c.limit, c.retry)
			}
		})
	}
}

// responseUsage is the usage of an answer of the Responses API.
const responseUsage = `"usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}`

// answersByVendor are whole answers with status 200 in the newer protocols.
var answersByVendor = map[string]struct {
	vendor, body string
	want         pipeline.ErrorKind
}{
	"ResponseText": {
		"openai", `{"object":"response","status":"completed","error":null,"output":[{` +
			`"type":"message","role":"assistant","content":[{"type":"output_text","text":"ok"}]}],` + responseUsage + `}`,
		"",
	},
	"ResponseCutOff": {"openai", `{"object":"response","status":"incomplete","incomplete_details":{` +
		`"reason":"max_output_tokens"},"output":[],` + responseUsage + `}`, pipeline.OutputTooLong},
	"ResponseFiltered": {
		"openai",
		`{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[],` +
			responseUsage + `}`, pipeline.Refused,
	},
	"ResponseRefusal": {
		"openai", `{"object":"response","status":"completed","output":[{` +
			`"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}],` + responseUsage +
			`}`,
		pipeline.Refused,
	},
	"ResponseToolCall": {
		"openai", `{"object":"response","status":"completed","output":[{` +
			`"type":"function_call","call_id":"c","name":"read","arguments":"{}"}],` + responseUsage + `}`,
		pipeline.ToolCallOutput,
	},
	"ResponseReasoning": {
		"openai", `{"object":"response","status":"completed","output":[{` +
			`"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}],` + responseUsage + `}`,
		pipeline.EmptyOutput,
	},
	"ResponseFailed": {
		"openai",
		`{"object":"response","status":"failed","error":{"code":"server_error","message":"x"},"output":[]}`,
		pipeline.ServerError,
	},
	"ResponseSteered": {
		"openai",
		`{"object":"response","status":"incomplete","incomplete_details":{"reason":"steered"},"output":[],` +
			responseUsage + `}`, pipeline.MalformedOutput,
	},
	"Compacted": {
		"openai",
		`{"object":"response.compaction","output":[{"type":"compaction","id":"c","encrypted_content":"abc"}],` +
			responseUsage + `}`, "",
	},
	"CompactedEmpty": {
		"openai",
		`{"object":"response.compaction","output":[{"type":"compaction","id":"c","encrypted_content":""}],` +
			responseUsage + `}`, pipeline.EmptyOutput,
	},
	"CompactedWithoutItem": {"openai", `{"object":"response.compaction","output":[{"type":"message",` +
		`"role":"user","content":[{"type":"input_text","text":"x"}]}],` + responseUsage + `}`, pipeline.EmptyOutput},
	"GoogleText": {"google", `{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{` +
		`"text":"ok"}],"role":"model"},"finishReason":"STOP"}]}`, ""},
	"GoogleCutOff": {
		"google",
		`{"candidates":[{"content":{"parts":[{"text":"half"}]},"finishReason":"MAX_TOKENS"}]}`,
		pipeline.OutputTooLong,
	},
	"GoogleCutOffInThought": {
		"google",
		`{"candidates":[{"finishReason":"MAX_TOKENS","index":0}],"usageMetadata":{"thoughtsTokenCount":8192}}`,
		pipeline.OutputTooLong,
	},
	"GoogleSafety": {
		"google", `{"candidates":[{"finishReason":"SAFETY","safetyRatings":[]}]}`,
		pipeline.Refused,
	},
	"GoogleRecitation": {"google", `{"candidates":[{"finishReason":"RECITATION"}]}`, pipeline.Refused},
	"GoogleProhibited": {
		"google", `{"candidates":[{"finishReason":"PROHIBITED_CONTENT"}]}`,
		pipeline.Refused,
	},
	"GoogleLanguage":      {"google", `{"candidates":[{"finishReason":"LANGUAGE"}]}`, pipeline.Refused},
	"GooglePromptBlocked": {"google", `{"promptFeedback":{"blockReason":"OTHER"}}`, pipeline.Refused},
	"GooglePromptNotBlocked": {
		"google",
		`{"promptFeedback":{},"candidates":[{"content":{"parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`, "",
	},
	"GoogleOther": {"google", `{"candidates":[{"finishReason":"OTHER"}]}`, pipeline.ServerError},
	"GoogleToolCall": {
		"google",
		`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"read","args":{}}}]},"finishReason":"STOP"}]}`,
		pipeline.ToolCallOutput,
	},
	"GoogleMalformedCall": {
		"google", `{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`,
		pipeline.ToolCallOutput,
	},
	"GoogleThoughtOnly": {
		"google",
		`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true}]},"finishReason":"STOP"}]}`,
		pipeline.EmptyOutput,
	},
	"GoogleNoContent": {"google", `{"candidates":[{"finishReason":"STOP"}]}`, pipeline.EmptyOutput},
	"GoogleNoFinish": {
		"google", `{"candidates":[{"content":{"parts":[{"text":"half"}]}}]}`,
		pipeline.MalformedOutput,
	},
	"GoogleNoCandidates": {
		"google", `{"usageMetadata":{"promptTokenCount":4},"candidates":[]}`,
		pipeline.MalformedOutput,
	},
	"GoogleErrorInTheAnswer": {
		"google",
		`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, pipeline.Overloaded,
	},
	// nobody asked for it here
	"AnthropicCompactionAlone": {"anthropic", `{"type":"message","role":"assistant","content":[{` +
		`"type":"compaction","content":"s"}],"stop_reason":"compaction","usage":{"input_tokens":0,` +
		`"output_tokens":0}}`, pipeline.EmptyOutput},
}

// TestClassifyAnswersByVendor reads whole answers with status 200 in the newer protocols.
func TestClassifyAnswersByVendor(t *testing.T) {
	t.Parallel()
	for name, c := range answersByVendor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ClassifyAnswer(c.vendor, []byte(c.body))
			if kind := pipeline.KindOf(err); kind != c.want {
				t.Errorf("%q, want %q (%v)", kind, c.want, err)
			}
			var e *pipeline.Error
			if err != nil && !errors.As(err, &e) {
				t.Errorf("%T", err)
			}
		})
	}
}
