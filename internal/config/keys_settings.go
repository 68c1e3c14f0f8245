package config

// settingKeys document the settings of a compaction.
var settingKeys = []Key{
	{
		Name:   "settings.trigger.auto",
		Effect: "Compact automatically. Off: only by hand, also when an overflow is reported.",
	},
	{
		Name: "settings.trigger.token_limit", Unit: "tokens",
		Effect: "Context size at which a compaction starts. 0: `settings.trigger.fraction` of the window.",
	},
	{
		Name: "settings.trigger.eval_override", Unit: "tokens",
		Effect: "Overrides `settings.trigger.token_limit`, for evaluations that need a fixed limit. 0: not set.",
	},
	{
		Name: "settings.trigger.fraction", Unit: "share of the window, 0 to 1",
		Effect: "Context size at which a compaction starts when no limit in tokens is given.",
	},
	{
		Name: "settings.trigger.turns", Unit: "user messages",
		Effect: "Number of genuine user messages not yet summarized at which a compaction starts, whatever their size.",
	},
	{Name: "settings.trigger.start.unused_tokens", Unit: "tokens", Effect: "Background compaction: start " +
		"preparing the summary when no more than this is left of the window. With `unused_percent` as well, the one " +
		"that is reached first counts. Both 0: nothing is prepared."},
	{
		Name: "settings.trigger.start.unused_percent", Unit: "share of the window, 0 to 1",
		Effect: "The same as a share of the window.",
	},
	{
		Name: "settings.trigger.apply.unused_tokens", Unit: "tokens",
		Effect: "Background compaction: apply the prepared summary when no more than this is left of the window.",
	},
	{
		Name: "settings.trigger.apply.unused_percent", Unit: "share of the window, 0 to 1",
		Effect: "The same as a share of the window.",
	},
	{Name: "settings.summarizers", Effect: "Summarizers, tried in this order: `self` (the agent's own model " +
		"on its own cached prompt) or `VENDOR/MODEL`. An entry may also be an object `{model, context_window, " +
		"max_output}`. The digest, which needs no model, is always last."},
	{Name: "settings.force_external", Effect: "Leave `self` out of the list."},
	{Name: "settings.mode", Effect: "`explicit`: use our prompt. `beta`: use the vendor's own compaction where " +
		"it has one."},
	{Name: "settings.prompt", Effect: "Name of the prompt to use. Empty: the one for the vendor and the occasion."},
	{Name: "settings.summary_max_tokens", Unit: "tokens", Effect: "Largest summary that is accepted."},
	{
		Name:   "settings.preserve_last_user",
		Effect: "Summarize the last user message as well, and also keep it word for word.",
	},
	{
		Name:   "settings.relaxed_split_guard",
		Effect: "Accept a split right after the first message. Off: everything is then summarized.",
	},
	{
		Name: "settings.tail_max_fraction", Unit: "share of the window, 0 to 1",
		Effect: "Largest part that is kept word for word. A longer last turn is split between two of its steps.",
	},
	{
		Name: "settings.max_prompt_chars", Unit: "chars",
		Effect: "Most that a summarizer is given to read. Less where its context window is smaller.",
	},
	{
		Name: "settings.strict_prompt_chars", Unit: "chars",
		Effect: "Used in place of `settings.max_prompt_chars` when over 0; the strict profile sets 2800000.",
	},
	{Name: "settings.tool_drop_threshold", Unit: "share of the messages, 0 to 1", Effect: "When the input is too " +
		"large and at least this share of it is tool messages, they are left out first. Over 1: never."},
	{
		Name: "settings.min_useful_chars", Unit: "chars",
		Effect: "A message that would be cut to less than this is replaced by a placeholder.",
	},
	{
		Name: "settings.tool_result_keep_turns", Unit: "user turns",
		Effect: "Tool results of this many last turns are sent in full; older long ones as a preview. 0: always " +
			"in full.",
	},
	{
		Name: "settings.tool_result_preview_chars", Unit: "chars",
		Effect: "Size over which an older tool result becomes a preview.",
	},
	{
		Name: "settings.max_tool_result_tokens", Unit: "tokens",
		Effect: "Largest tool result that is sent; the rest of a larger one is cut. 0: no limit.",
	},
	{Name: "settings.max_input_tokens", Unit: "tokens", Effect: "Largest request that is sent; the oldest turns of " +
		"a larger one are left out. 0: no limit, and a full context is compacted."},
	{Name: "settings.digest", Effect: "When the deterministic digest may replace a model's summary. `always`. " +
		"`never`: the run fails and the context stays as it was. `when_needed`: in automatic runs, in every run at " +
		"or " +
		"over the limit, and in a run by hand when no model can be called at all. A run by hand below the limit " +
		"whose " +
		"models all failed then ends `failed`, since nothing is lost by trying again."},
	{
		Name: "settings.breaker.failures", Unit: "failures in a row",
		Effect: "Number of failures after which a conversation's automatic runs stop for a while. That of the " +
			"installation is also the number of failed calls after which a tenant's automatic runs stop calling a " +
			"model.",
	},
	{
		Name: "settings.breaker.cooldown_seconds", Unit: "seconds",
		Effect: "How long automatic runs then wait before they try one attempt.",
	},
	{
		Name: "settings.nudge_fraction", Unit: "share of the window, 0 to 1",
		Effect: "Context size from which people are shown that a compaction is due.",
	},
	{Name: "settings.redact", Effect: "Take secrets out of everything that is sent to a model for a summary, and " +
		"out of the summary. The transcript is not changed."},
	{
		Name: "settings.run_time_budget_seconds", Unit: "seconds",
		Effect: "Most time that a run may spend on a model's summary before it uses the digest.",
	},
	{
		Name: "settings.run_token_budget", Unit: "tokens",
		Effect: "Most that a run may send to and receive from models. A call that might need more than is left is " +
			"not made. 0: no limit.",
	},
	{Name: "settings.tenant_daily_token_budget", Unit: "tokens", Effect: "Most that all runs of a tenant may send " +
		"to and receive from models on one day (UTC). A call is counted before it is sent, with the most that it may " +
		"need, and with what it used once that is known; one that failed, was cancelled or lost counts what it might " +
		"have needed. Beyond the budget the digest is used, and says so. Can be set for the installation and " +
		"for a tenant, not for a conversation. 0: no limit."},
}
