package llm

// The vendors' own codes, types and exception names, in lower case.
var (
	googleRateCodes = []string{"resource_exhausted"}
	quotaCodes      = []string{
		"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active",
		"insufficient_balance", "insufficient_credits", "credits_exhausted", "exceeded_current_quota_error",
		"contract_spend_limit_reached", "enforced_spend_limit_reached", "payment_required", "arrearage",
		"account_deactivated", "user_profile_not_billable",
		// 1113: Z.ai, balance used up
		"user_profile_billing_not_authorized", "access_terminated", "quota_exceeded", "1113",
	}
	refusedCodes = []string{
		"content_filter", "content_policy_violation", "responsibleaipolicyviolation", "invalid_prompt",
		"content_filtered", "bio_policy", "misalignment_policy_violation", "image_content_policy_violation",
		"data_inspection_failed", "datainspectionfailed", "prohibited_content", "content_moderation",
		"moderation_blocked",
		"1301", // Z.ai, unsafe content
	}
	// malformedCodes are about blocks that only the vendor can read, and where they stand: Anthropic's compaction, and
	// encrypted content of the Responses API.
	malformedCodes = []string{
		"compaction_block_ambiguous", "compaction_block_misplaced", "compaction_content_mismatch",
		"compaction_incomplete_turn", "compaction_signature_invalid", "compaction_too_many_tool_references",
		"compaction_tool_changes_mismatch", "invalid_encrypted_content",
	}
	rateCodes = []string{
		"rate_limit_error", "rate_limit_exceeded", "rate_limit_reached_error", "rate_limit_reached",
		"ramp_limit_exceeded", "throttlingexception", "throttling", "too_many_requests", "toomanyrequestsexception",
		"resource_exhausted", "servicequotaexceededexception", "rate_limited", "requests_per_minute_exceeded",
		"throttling.ratequota",
	}
	overflowCodes = []string{
		"context_length_exceeded", "context_overflow", "exceed_context_size_error", "model_max_prompt_tokens_exceeded",
		"context_window_exceeded", "contextwindowexceedederror", "prompt_too_long", "max_tokens_exceeded_error",
		"model_context_window_exceeded",
		"context_length_error", "input_too_long", "prompt_tokens_exceeded", "1261", // 1261: Z.ai
	}
	bytesCodes = []string{
		"request_too_large", "request_body_too_large_after_decoding", "string_above_max_length", "payload_too_large",
		"requestentitytoolarge", "request_entity_too_large", "body_too_large", "content_length_exceeded",
	}
	modelCodes = []string{
		"model_not_found", "model_not_available", "resourcenotfoundexception", "unknown_model", "invalid_model",
		"deploymentnotfound", "model_decommissioned", "model_terms_required", "model_not_supported", "modelnotfound",
		"1211",
	}
	authCodes = []string{
		"authentication_error", "permission_error", "invalid_api_key", "unauthenticated", "permission_denied",
		"api_key_invalid", "accessdeniedexception", "unrecognizedclientexception", "expiredtokenexception",
		"invalid_authentication_error", "invalid_authentication", "unauthorized", "invalid_organization",
		"api_key_service_blocked",
	}
	timeoutCodes = []string{
		"timeout_error", "deadline_exceeded", "modeltimeoutexception", "request_timeout",
		"timeout",
	}
	overloadedCodes = []string{
		"overloaded_error", "engine_overloaded_error", "unavailable", "serviceunavailableexception",
		"modelnotreadyexception", "service_unavailable", "engine_overloaded", "overloaded", "compaction_unavailable",
		"slow_down", "1305",
	}
	serverCodes = []string{
		"api_error", "server_error", "internal", "internal_error", "internal_server_error", "internalserverexception",
		"modelerrorexception", "upstream_error", "provider_error",
	}
	badRequestCodes = []string{
		"invalid_request_error", "invalid_argument", "validationexception",
		"failed_precondition", "bad_request",
	}
)
