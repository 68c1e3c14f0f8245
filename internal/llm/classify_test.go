package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"precis/pipeline"
)

// TestVendorAnswers classifies answers in the words of the vendors: those with status 200 by ClassifyAnswer, status 0
// is an error of Go's HTTP client.
func TestVendorAnswers(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/answers.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close() // read only
	rows := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var row struct {
			Name, Vendor, Body string
			Status             int
			Want               pipeline.ErrorKind
			Actual, Limit      int
		}
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		rows++
		t.Run(row.Vendor+"/"+row.Name, func(t *testing.T) {
			t.Parallel()
			var got *pipeline.Error
			if row.Status == 200 {
				if _, err := ClassifyAnswer(row.Vendor, []byte(row.Body)); !errors.As(err, &got) {
					t.Fatalf("ClassifyAnswer: %v, want kind %s", err, row.Want)
				}
			} else {
				got = Classify(row.Vendor, row.Status, nil, []byte(row.Body), nil)
			}
			if got.Kind != row.Want {
				t.Errorf("kind %s, want %s", got.Kind, row.Want)
			}
			if got.ActualTokens != row.Actual || got.LimitTokens != row.Limit {
				t.Errorf("actual %d limit %d, want %d and %d", got.ActualTokens, got.LimitTokens, row.Actual, row.Limit)
			}
			if row.Status == 0 {
				// The same words as the text of an error of Go's.
				if k := Classify(row.Vendor, 0, nil, nil, errors.New(row.Body)).Kind; k != row.Want {
					t.Errorf("as a cause: kind %s, want %s", k, row.Want)
				}
			}
		})
	}
	if rows < 30 {
		t.Errorf("only %d rows read", rows)
	}
}

// classifyCases are answers of real vendors, gathered from their documentation and from public reports.
var classifyCases = []struct {
	name, vendor  string
	status        int
	body          string
	want          pipeline.ErrorKind
	actual, limit int
}{
	// Overflow, in each vendor's words.
	{
		"AnthropicWithCommas", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"prompt is too long: 1,213,462 tokens > 1,000,000 maximum"}}`, pipeline.InputTokensExceeded,
		1213462,
		1000000,
	},
	{"AnthropicLongContextNotBooked", "anthropic", 429, `{"type":"error","error":{"type":"rate_limit_error",` +
		`"message":"Extra usage is required for long context requests."}}`, pipeline.InputTokensExceeded, 0, 0},
	{
		"AnthropicLongContextBeta", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"The long context beta is not yet available for this subscription."}}`,
		pipeline.InputTokensExceeded,
		0, 0,
	},
	{"OneWord", "openai", 400, `{"error":{"message":"context_overflow"}}`, pipeline.InputTokensExceeded, 0, 0},
	{
		"OneWordAsCode", "openai", 400, `{"error":{"message":"nope","code":"context_overflow"}}`,
		pipeline.InputTokensExceeded, 0, 0,
	},
	{
		"OpenAICodeOnly", "openai", 400,
		`{"error":{"message":"nope","type":"invalid_request_error","code":"context_length_exceeded"}}`,
		pipeline.InputTokensExceeded, 0, 0,
	},
	{"OpenAIMessagesAndFunctions", "openai", 400, `{"error":{"message":"This model's maximum context length is ` +
		`128000 tokens. However, your messages resulted in 130507 tokens (130000 in the messages, 507 in the ` +
		`functions). Please reduce the length of the messages or functions.","type":"invalid_request_error",` +
		`"param":"messages","code":"context_length_exceeded"}}`, pipeline.InputTokensExceeded, 130507, 128000},
	{
		"OpenAITooLargeForTheRate", "openai", 429, `{"error":{"message":"Request too large for gpt-4.1 in ` +
			`organization org-x on tokens per min (TPM): Limit 30000, Requested 48635. The input or output tokens ` +
			`must be reduced in order to run successfully.","type":"tokens","code":"rate_limit_exceeded"}}`,
		pipeline.InputTokensExceeded, 48635, 30000,
	},
	{"GroqTooLargeForTheRate", "groq", 413, `{"error":{"message":"Request too large for model ` +
		`llama-3.1-8b-instant in organization org_x service tier on_demand on tokens per minute (TPM): Limit 6000,` +
		` Requested 7250, please reduce your message size and try again.","type":"tokens",` +
		`"code":"rate_limit_exceeded"}}`, pipeline.InputTokensExceeded, 7250, 6000},
	{"DeepSeek", "deepseek", 400, `{"error":{"message":"This model's maximum context length is 65536 tokens. ` +
		`However, you requested 68323 tokens (60131 in the messages, 8192 in the completion). Please reduce the ` +
		`length of the messages or completion.","type":"invalid_request_error","param":null,` +
		`"code":"invalid_request_error"}}`, pipeline.InputTokensExceeded, 68323, 65536},
	{
		"VLLMOnlyTheAnswersRoom", "vllm", 400, `{"object":"error","message":"'max_tokens' or 'max_completion_tokens' ` +
			`is too large: 4096. This model's maximum context length is 4096 tokens and your request has 100 input ` +
			`tokens (4096 > 4096 - 100).","type":"BadRequestError","param":null,"code":400}`,
		pipeline.InputTokensExceeded,
		0, 4096,
	},
	{
		"VLLMServerError", "vllm", 500, `{"object":"error","message":"The decoder prompt (length 40000) is longer ` +
			`than the maximum model length of 32768.","type":"BadRequestError","code":400}`,
		pipeline.InputTokensExceeded,
		40000, 32768,
	},
	{
		"LlamaCppWithFields", "llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available ` +
			`context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":5012,"n_ctx":4096}}`,
		pipeline.InputTokensExceeded, 5012, 4096,
	},
	{
		"LlamaCppInWords", "llama.cpp", 400, `{"error":{"code":400,"message":"request (9012 tokens) exceeds the ` +
			`available context size (8192 tokens), try increasing it","type":"invalid_request_error"}}`,
		pipeline.InputTokensExceeded, 9012, 8192,
	},
	{
		"LMStudio", "lmstudio", 400, `{"error":"Trying to keep the first 9000 tokens when context the overflows. ` +
			`However, the model is loaded with context length of only 4096 tokens, which is not enough."}`,
		pipeline.InputTokensExceeded, 0, 4096,
	},
	{
		"TGI", "together", 422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= " +
			"4097. Given: 4000 `inputs` tokens and 1000 `max_new_tokens`\",\"error_type\":\"validation\"}",
		pipeline.InputTokensExceeded, 0, 4097,
	},
	{"Mistral", "mistral", 400, `{"object":"error","message":"Prompt contains 150000 tokens and 0 draft tokens, ` +
		`too large for model with 131072 maximum context length","type":"invalid_request_invalid_args",` +
		`"param":null,"code":"3051"}`, pipeline.InputTokensExceeded, 150000, 131072},
	{
		"Fireworks", "fireworks", 400, `{"error":{"object":"error","type":"invalid_request_error","message":"The ` +
			`prompt is too long: 150000, model maximum context length: 131071"}}`, pipeline.InputTokensExceeded, 150000,
		131071,
	},
	{"Cohere", "cohere", 400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed ` +
		`4081 - received 4292. Try using a shorter prompt."}`, pipeline.InputTokensExceeded, 4292, 4081},
	{"Copilot", "copilot", 400, `{"error":{"message":"prompt token count of 70000 exceeds the limit of 64000",` +
		`"code":"model_max_prompt_tokens_exceeded"}}`, pipeline.InputTokensExceeded, 70000, 64000},
	{"Cerebras", "cerebras", 400, `{"message":"Please reduce the length of the messages or completion. Current ` +
		`length is 8297 while limit is 8192","type":"invalid_request_error","param":"messages",` +
		`"code":"context_length_exceeded"}`, pipeline.InputTokensExceeded, 8297, 8192},
	{"DashScope", "qwen", 400, `{"error":{"code":"invalid_parameter_error","message":"<400> ` +
		`InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]",` +
		`"type":"invalid_request_error"}}`, pipeline.InputTokensExceeded, 0, 129024},
	{
		"ZAI", "zai", 400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`,
		pipeline.InputTokensExceeded, 0, 0,
	},
	{"MiniMax", "minimax", 400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, ` +
		`context window exceeds limit (2013)"}}`, pipeline.InputTokensExceeded, 0, 0},
	{
		"BedrockTooManyInputTokens", "bedrock", 400,
		`{"message":"Too many input tokens. Max input tokens: 8192, request input token count: 10000 "}`,
		pipeline.InputTokensExceeded, 0, 0,
	},
	{
		"Ollama", "ollama", 400, `{"error":"the input length exceeds the context length"}`,
		pipeline.InputTokensExceeded, 0, 0,
	},

	// Wrapped overflow errors.
	{
		"LiteLLM", "litellm", 400, `{"error":{"message":"litellm.ContextWindowExceededError: ` +
			`litellm.BadRequestError: AnthropicException - {\"type\":\"error\",\"error\":{` +
			`\"type\":\"invalid_request_error\",` +
			`\"message\":\"prompt is too long: 213462 tokens > 200000 maximum\"}}. ` +
			`Received Model Group=claude","type":null,"param":null,"code":"400"}}`, pipeline.InputTokensExceeded,
		213462,
		200000,
	},
	{"OpenRouterRaw", "openrouter", 400, `{"error":{"message":"Provider returned error","code":400,"metadata":{` +
		`"raw":"{\"error\":{\"message\":\"This model's maximum prompt length is 131072 but the request contains ` +
		`537812 tokens.\"}}","provider_name":"xAI"}}}`, pipeline.InputTokensExceeded, 537812, 131072},
	{"TwiceEmbedded", "proxy", 502, `{"detail":"upstream said: {\"error\":\"{\\\"code\\\":400,` +
		`\\\"message\\\":\\\"The input token count (1196265) exceeds the maximum number of tokens allowed ` +
		`(1048575).\\\"}\"}"}`, pipeline.InputTokensExceeded, 1196265, 1048575},
	{
		"GoogleList", "google", 400, `[{"error":{"code":400,"message":"The input token count (1196265) exceeds the ` +
			`maximum number of tokens allowed (1048575).","status":"INVALID_ARGUMENT"}}]`, pipeline.InputTokensExceeded,
		1196265, 1048575,
	},
	{"EventStreamBody", "anthropic", 400, "event: error\ndata: " +
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"prompt is too long: 5 " +
		"tokens > 4 maximum\"}}\n\n", pipeline.InputTokensExceeded, 5, 4},

	// Errors that resemble an overflow.
	{
		"GoProxysDeadline", "proxy", 500, `Post "http://upstream/v1/messages": context deadline exceeded`,
		pipeline.Timeout, 0, 0,
	},
	{
		"GoProxysDeadlineJSON", "proxy", 502,
		`{"error":{"message":"context deadline exceeded (Client.Timeout exceeded while awaiting headers)"}}`,
		pipeline.Timeout, 0, 0,
	},
	{"ThinkingNotSupported", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"thinking.type.enabled is not supported for this model"}}`, pipeline.BadRequest, 0, 0},
	{"AnthropicOutputRoom", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for ` +
		`claude-sonnet-4-5"}}`, pipeline.BadRequest, 0, 0},
	{"OpenAIOutputRoom", "openai", 400, `{"error":{"message":"max_tokens is too large: 100000. This model ` +
		`supports at most 16384 completion tokens, whereas you provided 100000.","type":"invalid_request_error",` +
		`"param":"max_tokens","code":"invalid_value"}}`, pipeline.BadRequest, 0, 0},
	{"OpenAIWrongOutputKey", "openai", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not ` +
		`supported with this model. Use 'max_completion_tokens' instead.","type":"invalid_request_error",` +
		`"param":"max_tokens","code":"unsupported_parameter"}}`, pipeline.BadRequest, 0, 0},
	{
		"AnthropicTemperature", "anthropic", 400,
		`{"type":"error","error":{"type":"invalid_request_error","message":"temperature: not permitted"}}`,
		pipeline.BadRequest, 0, 0,
	},
	{"RateInTokensPerDay", "groq", 429, `{"error":{"message":"Rate limit reached for model x on tokens per day ` +
		`(TPD): Limit 100000, Used 99800, Requested 900. Please try again in 10m4.8s.","type":"tokens",` +
		`"code":"rate_limit_exceeded"}}`, pipeline.RateLimited, 0, 0},
	{
		"RateAsBadRequest", "proxy", 400, `{"error":{"message":"Too many tokens per minute, slow down"}}`,
		pipeline.RateLimited, 0, 0,
	},
	{"RateWithoutBody", "openai", 429, ``, pipeline.RateLimited, 0, 0},
	{
		"RateInHTML", "proxy", 429, `<html><body><h1>429 Too Many Requests</h1></body></html>`, pipeline.RateLimited, 0,
		0,
	},
	{"BedrockThrottlingType", "bedrock", 400, `{"__type":"com.amazon.coral#ThrottlingException","message":"Too ` +
		`many tokens, please wait before trying again."}`, pipeline.RateLimited, 0, 0},
	{"GoogleRateSpeaksOfBilling", "google", 429, `{"error":{"code":429,"message":"You exceeded your current quota,` +
		` please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{` +
		`"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"35s"}]}}`, pipeline.RateLimited, 0, 0},
	{
		"GoogleQuota", "google", 429,
		`{"error":{"code":429,"message":"Your prepayment credits are depleted.","status":"RESOURCE_EXHAUSTED"}}`,
		pipeline.Quota, 0, 0,
	},
	{"VertexExhausted", "google", 429, `{"error":{"code":429,"message":"Resource has been exhausted (e.g. check ` +
		`quota).","status":"RESOURCE_EXHAUSTED"}}`, pipeline.RateLimited, 0, 0},
	{"OverloadedAs429", "moonshot", 429, `{"error":{"message":"The engine is currently overloaded, please try ` +
		`again later","type":"engine_overloaded_error"}}`, pipeline.Overloaded, 0, 0},

	// Bytes.
	{
		"OpenAIStringTooLong", "openai", 400, `{"error":{"message":"Invalid 'messages[1].content': string too long. ` +
			`Expected a string with maximum length 1048576, but got a string with length 2000000 instead.",` +
			`"type":"invalid_request_error","param":"messages[1].content","code":"string_above_max_length"}}`,
		pipeline.InputTooLarge, 0, 0,
	},
	{"AnthropicImage", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 ` +
		`bytes"}}`, pipeline.InputTooLarge, 0, 0},
	{
		"Nginx", "proxy", 413, "<html>\r\n<head><title>413 Request Entity Too " +
			"Large</title></head>\r\n<body>\r\n<center><h1>413 Request Entity Too Large</h1></center></body></html>",
		pipeline.InputTooLarge, 0, 0,
	},
	{"BareStatus413", "proxy", 413, ``, pipeline.InputTooLarge, 0, 0},
	{
		"Tokens413", "proxy", 413, `{"error":{"message":"prompt is too long: 300000 tokens > 200000 maximum"}}`,
		pipeline.InputTokensExceeded, 300000, 200000,
	},
	{"GooglePayload", "google", 400, `{"error":{"code":400,"message":"Request payload size exceeds the limit: ` +
		`20971520 bytes.","status":"INVALID_ARGUMENT"}}`, pipeline.InputTooLarge, 0, 0},

	// Shape of the history.
	{
		"AnthropicOrphanResult", "anthropic", 400,
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.0.content.0: " +
			"unexpected `tool_use_id` found in `tool_result` blocks: toolu_1. Each `tool_result` block must have " +
			"a corresponding `tool_use` block in the previous message.\"}}", pipeline.MalformedHistory, 0, 0,
	},
	{
		"AnthropicThinkingModified", "anthropic", 400,
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.5.content.0: " +
			"`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.\"}}",
		pipeline.MalformedHistory, 0, 0,
	},
	{
		"AnthropicSignature", "anthropic", 400,
		"{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"messages.1.content.0: " +
			"Invalid `signature` in `thinking` block\"}}", pipeline.MalformedHistory, 0, 0,
	},
	{"AnthropicEmptyText", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"messages: text content blocks must be non-empty"}}`, pipeline.MalformedHistory, 0, 0},
	{"AnthropicAlternate", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"messages: roles must alternate between \"user\" and \"assistant\", but found multiple ` +
		`\"user\" roles in a row"}}`, pipeline.MalformedHistory, 0, 0},
	{
		"AnthropicCacheMarks", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"A maximum of 4 blocks with cache_control may be provided. Found 5."}}`,
		pipeline.MalformedHistory,
		0, 0,
	},
	{
		"AnthropicSurrogate", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
			`"message":"The request body is not valid JSON: no low surrogate in string: line 1 column 1234 (char ` +
			`1233)"}}`,
		pipeline.MalformedHistory, 0, 0,
	},
	{"OpenAIOrphanResult", "openai", 400, `{"error":{"message":"Invalid parameter: messages with role 'tool' must ` +
		`be a response to a preceeding message with 'tool_calls'.","type":"invalid_request_error",` +
		`"param":"messages.[1].role","code":null}}`, pipeline.MalformedHistory, 0, 0},
	{"OpenAIResponses", "openai", 400, `{"error":{"message":"No tool output found for function call call_abc.",` +
		`"type":"invalid_request_error","param":"input","code":null}}`, pipeline.MalformedHistory, 0, 0},
	{
		"OpenAINullContent", "openai", 400, `{"error":{"message":"Invalid value for 'content': expected a string, ` +
			`got null.","type":"invalid_request_error","param":"messages.[2].content","code":null}}`,
		pipeline.MalformedHistory, 0, 0,
	},
	{
		"GooglePairing", "google", 400, `{"error":{"code":400,"message":"Please ensure that function call turn comes ` +
			`immediately after a user turn or after a function response turn.","status":"INVALID_ARGUMENT"}}`,
		pipeline.MalformedHistory, 0, 0,
	},
	{"GoogleSignature", "google", 400, `{"error":{"code":400,"message":"Function call is missing a ` +
		`thought_signature in functionCall parts.","status":"INVALID_ARGUMENT"}}`, pipeline.MalformedHistory, 0, 0},
	{
		"MistralRoles", "mistral", 400, `{"object":"error","message":"Expected last role User or Tool (or Assistant ` +
			`with prefix True) for serving but got assistant","type":"invalid_request_message_order","code":"3230"}`,
		pipeline.MalformedHistory, 0, 0,
	},
	{"TemplateAlternation", "vllm", 400, `{"object":"error","message":"Conversation roles must alternate ` +
		`user/assistant/user/assistant/...","type":"BadRequestError","code":400}`, pipeline.MalformedHistory, 0, 0},
	{"BedrockPairing", "bedrock", 400, `{"message":"The number of toolResult blocks at messages.2.content exceeds ` +
		`the number of toolUse blocks of previous turn."}`, pipeline.MalformedHistory, 0, 0},

	// Quota.
	{"DeepSeekBalance", "deepseek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error",` +
		`"param":null,"code":"invalid_request_error"}}`, pipeline.Quota, 0, 0},
	{"Bare402", "proxy", 402, ``, pipeline.Quota, 0, 0},
	{"OpenRouterCredits", "openrouter", 402, `{"error":{"message":"This request requires more credits, or fewer ` +
		`max_tokens. You requested up to 65536 tokens, but can only afford 3000.","code":402}}`, pipeline.Quota, 0, 0},
	{"ZAIBalance", "zai", 429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. ` +
		`Please recharge."}}`, pipeline.Quota, 0, 0},
	{"AnthropicUsageLimit", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at ` +
		`00:00 UTC."}}`, pipeline.Quota, 0, 0},
	{
		"AnthropicBilling", "anthropic", 403, `{"type":"error","error":{"type":"billing_error","message":"no"}}`,
		pipeline.Quota, 0, 0,
	},
	{"KimiQuota", "moonshot", 429, `{"error":{"message":"Your account is suspended, please check your plan and ` +
		`billing details","type":"exceeded_current_quota_error"}}`, pipeline.Quota, 0, 0},

	// Auth, model, refusal.
	{"OpenAIKey", "openai", 401, `{"error":{"message":"Incorrect API key provided: sk-proj-********abcd. You can ` +
		`find your API key at https://platform.openai.com/account/api-keys.","type":"invalid_request_error",` +
		`"code":"invalid_api_key"}}`, pipeline.Auth, 0, 0},
	{"GoogleKey", "google", 400, `{"error":{"code":400,"message":"API key not valid. Please pass a valid API ` +
		`key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`, pipeline.Auth, 0, 0},
	{"XAIKey", "xai", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: ` +
		`xa***yz. You can obtain an API key from https://console.x.ai."}`, pipeline.Auth, 0, 0},
	{"Forbidden", "anthropic", 403, `{"type":"error","error":{"type":"permission_error","message":"Your API key ` +
		`does not have permission to use the specified resource."}}`, pipeline.Auth, 0, 0},
	{
		"Disabled", "anthropic", 400,
		`{"type":"error","error":{"type":"invalid_request_error","message":"This organization has been disabled."}}`,
		pipeline.Auth, 0, 0,
	},
	{"ForbiddenPage", "proxy", 403, `<html><head><title>403 Forbidden</title></head></html>`, pipeline.Auth, 0, 0},
	{
		"BedrockDenied", "bedrock", 400,
		`{"__type":"AccessDeniedException","message":"User is not authorized to perform: bedrock:InvokeModel"}`,
		pipeline.Auth, 0, 0,
	},
	{
		"OpenAIModel", "openai", 404, "{\"error\":{\"message\":\"The model `gpt-x` does not exist or you do not have " +
			"access to it.\",\"type\":\"invalid_request_error\",\"code\":\"model_not_found\"}}", pipeline.ModelNotFound,
		0,
		0,
	},
	{"OpenAIModelForbidden", "openai", 403, "{\"error\":{\"message\":\"Project `p` does not have access to model " +
		"`gpt-x`\",\"type\":\"invalid_request_error\",\"code\":\"model_not_found\"}}", pipeline.ModelNotFound, 0, 0},
	{"OllamaModel", "ollama", 404, `{"error":"model 'llama9' not found"}`, pipeline.ModelNotFound, 0, 0},
	{
		"XAIModel", "xai", 400, `{"code":"Client specified an invalid argument","error":"Model not found: grok-99"}`,
		pipeline.ModelNotFound, 0, 0,
	},
	{
		"OpenRouterModel", "openrouter", 404,
		`{"error":{"message":"No endpoints found for anthropic/claude-none.","code":404}}`, pipeline.ModelNotFound, 0,
		0,
	},
	{"WrongAddress", "openai", 404, `404 page not found`, pipeline.BadRequest, 0, 0},
	{
		"WrongAddressPage", "openai", 404, `<!DOCTYPE html><html><body>Not Found</body></html>`, pipeline.BadRequest, 0,
		0,
	},
	{"Redirect", "openai", 301, ``, pipeline.BadRequest, 0, 0},
	{"AzureFilter", "azure", 400, `{"error":{"message":"The response was filtered due to the prompt triggering ` +
		`Azure OpenAI's content management policy.","type":null,"param":"prompt","code":"content_filter",` +
		`"status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, pipeline.Refused, 0, 0},
	{
		"OpenAIFlagged", "openai", 400, `{"error":{"message":"Invalid prompt: your prompt was flagged as potentially ` +
			`violating our usage policy.","type":"invalid_request_error","code":"invalid_prompt"}}`, pipeline.Refused,
		0,
		0,
	},
	{"AnthropicFilter", "anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error",` +
		`"message":"Output blocked by content filtering policy"}}`, pipeline.Refused, 0, 0},
	{"KimiRisk", "moonshot", 400, `{"error":{"message":"The request was rejected because it was considered high ` +
		`risk","type":"content_filter"}}`, pipeline.Refused, 0, 0},
	{
		"AliyunInspection", "qwen", 400,
		`{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}`,
		pipeline.Refused, 0, 0,
	},
	{
		"OpenRouterModeration", "openrouter", 403,
		`{"error":{"message":"openai/gpt-x requires moderation. Your input was flagged for \"violence\"","code":403}}`,
		pipeline.Refused, 0, 0,
	},

	// The service.
	{"Bare500", "openai", 500, ``, pipeline.ServerError, 0, 0},
	{
		"AnthropicAPIError", "anthropic", 500,
		`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, pipeline.ServerError, 0, 0,
	},
	{"Bare502", "proxy", 502, `<html><head><title>502 Bad Gateway</title></head></html>`, pipeline.ServerError, 0, 0},
	{"Bare503", "proxy", 503, ``, pipeline.Overloaded, 0, 0},
	{
		"GoogleUnavailable", "google", 503,
		`{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`,
		pipeline.Overloaded, 0, 0,
	},
	{"GoogleDeadline", "google", 504, `{"error":{"code":504,"message":"Deadline expired before operation could ` +
		`complete.","status":"DEADLINE_EXCEEDED"}}`, pipeline.Timeout, 0, 0},
	{
		"OverloadedAs500", "openai", 500,
		`{"error":{"message":"The server is currently overloaded with other requests.","type":"server_error"}}`,
		pipeline.Overloaded, 0, 0,
	},
	{"Cloudflare524", "proxy", 524, `error code: 524`, pipeline.Timeout, 0, 0},
	{"Cloudflare520", "proxy", 520, ``, pipeline.ServerError, 0, 0},
	{"Bare408", "proxy", 408, ``, pipeline.Timeout, 0, 0},
	{"Bare400", "openai", 400, ``, pipeline.BadRequest, 0, 0},
	{"Teapot", "proxy", 418, `{"error":"I'm a teapot"}`, pipeline.BadRequest, 0, 0},

	// Errors in an answer with status 200.
	{
		"OverloadedEvent", "anthropic", 200,
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, pipeline.Overloaded, 0, 0,
	},
	{
		"APIErrorEvent", "anthropic", 200,
		`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`, pipeline.ServerError, 0, 0,
	},
	{
		"InvalidRequestEvent", "anthropic", 200,
		`{"type":"error","error":{"type":"invalid_request_error","message":"something"}}`, pipeline.BadRequest, 0, 0,
	},
	{
		"RateEvent", "openrouter", 200, `{"error":{"code":429,"message":"Rate limit exceeded"}}`, pipeline.RateLimited,
		0, 0,
	},
	{
		"UpstreamEvent", "openrouter", 200, `{"error":{"code":502,"message":"Provider disconnected"}}`,
		pipeline.ServerError, 0, 0,
	},
	{
		"OverflowEvent", "openai", 200,
		`{"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`,
		pipeline.InputTokensExceeded, 0, 0,
	},
	{"MuteEvent", "openai", 200, `{"error":{}}`, pipeline.ServerError, 0, 0},
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range classifyCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := Classify(c.vendor, c.status, nil, []byte(c.body), nil)
			if got.Kind != c.want {
				t.Errorf("kind %s, want %s (%s)", got.Kind, c.want, got.Message)
			}
			if got.ActualTokens != c.actual || got.LimitTokens != c.limit {
				t.Errorf("actual %d limit %d, want %d and %d", got.ActualTokens, got.LimitTokens, c.actual, c.limit)
			}
			if got.Status != c.status {
				t.Errorf("status %d, want %d", got.Status, c.status)
			}
			if !strings.HasPrefix(got.Message, c.vendor+": ") {
				t.Errorf("message %q does not begin with the vendor", got.Message)
			}
		})
	}
}

func TestClassifyCauses(t *testing.T) {
	t.Parallel()
	atAddress := func(err error) error {
		return &url.Error{Op: "Post", URL: "https://api.example/v1/messages?key=sk-secret-0123456789", Err: err}
	}
	for name, c := range map[string]struct {
		cause error
		want  pipeline.ErrorKind
	}{
		"Deadline":  {atAddress(context.DeadlineExceeded), pipeline.Timeout},
		"Cancelled": {atAddress(context.Canceled), pipeline.Cancelled},
		"Refused": {
			atAddress(&net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}),
			pipeline.Network,
		},
		"Reset": {
			atAddress(&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}),
			pipeline.Network,
		},
		"NoHost": {
			atAddress(&net.DNSError{Err: "no such host", Name: "api.example", IsNotFound: true}),
			pipeline.Network,
		},
		"EOF":       {atAddress(io.EOF), pipeline.Network},
		"BrokenOff": {fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), pipeline.Network},
		"DialTime":  {atAddress(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}), pipeline.Timeout},
		"Unknown":   {errors.New("something else"), pipeline.Network},
		"TLS": {
			atAddress(
				errors.New("tls: failed to verify certificate: x509: certificate signed by unknown authority")),
			pipeline.Network,
		},
		"OverflowIn": {errors.New("prompt is too long: 5 tokens > 4 maximum"), pipeline.InputTokensExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Classify("anthropic", 0, nil, nil, c.cause)
			if got.Kind != c.want {
				t.Errorf("kind %s, want %s", got.Kind, c.want)
			}
			if all := got.Error() + fmt.Sprint(got.Cause); strings.Contains(all, "sk-secret") {
				t.Errorf("the key is in the error: %s", all)
			}
		})
	}
	if got := Classify("x", 0, nil, nil, nil); got == nil || got.Kind != pipeline.ServerError {
		t.Errorf("nothing at all: %v", got)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	date := func(s string) http.Header {
		return http.Header{"Date": {"Sun, 29 Nov 2026 10:00:00 GMT"}, "Retry-After": {s}}
	}
	for name, c := range map[string]struct {
		header http.Header
		body   string
		want   time.Duration
	}{
		"Seconds":      {http.Header{"Retry-After": {"7"}}, "", 7 * time.Second},
		"Fraction":     {http.Header{"Retry-After": {"1.5"}}, "", 1500 * time.Millisecond},
		"Milliseconds": {http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"9"}}, "", 250 * time.Millisecond},
		"Date":         {date("Sun, 29 Nov 2026 10:00:42 GMT"), "", 42 * time.Second},
		"DatePast":     {date("Sun, 29 Nov 2026 09:00:00 GMT"), "", 0},
		"OldDateForm":  {date("Sunday, 29-Nov-26 10:01:00 GMT"), "", time.Minute},
		"Negative":     {http.Header{"Retry-After": {"-5"}}, "", 0},
		"Rubbish":      {http.Header{"Retry-After": {"soon"}}, "", 0},
		"NotANumber":   {http.Header{"Retry-After": {"NaN"}}, "", 0},
		"TooLong":      {http.Header{"Retry-After": {"1e30"}}, "", 24 * time.Hour},
		"GoogleField": {
			nil, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"35.5s"}]}}`,
			35500 * time.Millisecond,
		},
		"InWords": {
			nil, `{"error":{"message":"Rate limit reached. Please try again in 6.12s."}}`,
			6120 * time.Millisecond,
		},
		"InWordsLong": {
			nil, `{"error":{"message":"Please try again in 10m4.8s."}}`,
			10*time.Minute + 4800*time.Millisecond,
		},
		"InWordsMillis":  {nil, `{"error":{"message":"Please retry in 450ms."}}`, 450 * time.Millisecond},
		"SecondsInWords": {nil, `{"error":{"message":"Please retry after 20 seconds"}}`, 20 * time.Second},
		"Minute":         {nil, `{"error":{"message":"try again in 3m"}}`, 3 * time.Minute},
		"HeaderFirst": {
			http.Header{"Retry-After": {"3"}},
			`{"error":{"message":"try again in 9s"}}`,
			3 * time.Second,
		},
		"NothingGiven":   {nil, `{"error":{"message":"try again later"}}`, 0},
		"FieldInSeconds": {nil, `{"error":{"message":"slow down","retry_after":12}}`, 12 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Classify("x", 429, c.header, []byte(c.body), nil).RetryAfter; got != c.want {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// TestMessagesContainNoRequestText: text of the request that a vendor echoes, and anything that looks like a key, is
// not in the error.
func TestMessagesContainNoRequestText(t *testing.T) {
	t.Parallel()
	const private = "the launch code of the orbital platform is nine nine seven"
	for name, c := range map[string]struct {
		status int
		body   string
	}{
		"Pydantic": {400, `{"object":"error","message":"1 validation error for ChatCompletionRequest [` +
			`type=string_type, input_value={'role': 'user', 'content': '` + private + `'}, input_type=dict]"}`},
		"FastAPI": {422, `{"detail":[{"type":"missing","loc":["body"],"msg":"Field required","input":{` +
			`"messages":[{"content":"` + private + `"}]}}]}`},
		"Quoted":     {400, `{"error":{"message":"Invalid value: '` + private + `'."}}`},
		"SecondLine": {400, `{"error":{"message":"bad\n` + private + `"}}`},
		"OpenQuote":  {400, `{"error":{"message":"Unknown name \"` + private + `"}}`},
		"Key":        {400, `{"error":{"message":"bad key sk-ant-REDACTED here, or Bearer abc.def.ghi"}}`},
		"KeyIn401":   {401, `{"error":{"message":"Incorrect API key provided: sk-proj-abcdefghijkl"}}`},
		"ServerSays": {500, `{"error":{"message":"` + private + `"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := Classify("x", c.status, nil, []byte(c.body), nil)
			for _, secret := range []string{private, "launch code", "sk-ant", "abc.def", "sk-proj"} {
				if strings.Contains(e.Error(), secret) {
					t.Errorf("%q is in %q", secret, e.Error())
				}
			}
			if e.Cause != nil {
				t.Errorf("a cause is kept: %v", e.Cause)
			}
		})
	}
	e := Classify("anthropic", 400, nil, []byte(`{"type":"error","error":{"type":"invalid_request_error",`+
		`"message":"max_tokens: 9 > 8, which is the maximum allowed number of output tokens"}}`), nil)
	if want := "anthropic: the request was not accepted (status 400, invalid_request_error): max_tokens: 9 > 8, " +
		"which is the maximum allowed number of output tokens"; e.Message != want {
		t.Errorf("message\n%q, want\n%q", e.Message, want)
	}
	if n := len([]rune(Classify("x", 400, nil, []byte(`{"message":"`+strings.Repeat("long ", 500)+`"}`),
		nil).Message)); n > 300 {
		t.Errorf("a message of %d chars", n)
	}
}

// FuzzClassify: any body gets a kind, at bounded cost, and a message of bounded length without control chars.
func FuzzClassify(f *testing.F) {
	for _, c := range classifyCases {
		f.Add(c.status, []byte(c.body))
	}
	f.Add(400, []byte(strings.Repeat(`{"error":`, 5000)))
	f.Add(400, []byte(strings.Repeat(`[`, 100000)))
	f.Add(0, []byte(`"\ud800"`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		e := Classify("v", status, nil, body, nil)
		found := false
		for _, k := range pipeline.ErrorKinds {
			found = found || k == e.Kind
		}
		if !found {
			t.Errorf("kind %q is none of the list", e.Kind)
		}
		if len(e.Message) > 2000 || strings.ContainsAny(e.Message, "\n\r\x00\x1b") {
			t.Errorf("message %q", e.Message)
		}
		if e.ActualTokens < 0 || e.LimitTokens < 0 || e.RetryAfter < 0 {
			t.Errorf("a negative figure: %+v", e)
		}
		if _, err := ClassifyAnswer("anthropic", body); err != nil && pipeline.KindOf(err) == pipeline.Internal {
			t.Errorf("ClassifyAnswer: %v", err)
		}
	})
}
