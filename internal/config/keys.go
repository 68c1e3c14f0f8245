package config

import (
	"reflect"
	"strings"
)

// Key documents one key. Default and Type are taken from the code that uses them, so that they cannot lie.
type Key struct {
	// Name with dots. A part in angle brackets is a name that the user chooses.
	Name string `json:"name"`
	// Type as a person would say it.
	Type string `json:"type"`
	// Default as text, "" for none.
	Default string `json:"default"`
	// Unit of the value, "" where it has none.
	Unit string `json:"unit,omitempty"`
	// Effect says what the key does, in a sentence or two.
	Effect string `json:"effect"`
	// Variable of the environment; "" for a key that no variable's name can hold.
	Variable string `json:"variable,omitempty"`
	// Flag of the command line without its hyphens, "" when --set is the only one.
	Flag string `json:"flag,omitempty"`
	// Secret values are masked when shown, and refused on the command line.
	Secret bool `json:"secret,omitempty"`
}

// table is every key there is, in the order of Config's fields. A test compares it with the types.
var table = []Key{
	{Name: "dir", Unit: "path", Flag: "dir", Effect: "Folder of the local stack: its private database, the " +
		"programs it built, its logs. Empty: `.precis` in the checkout that you stand in, else in your home " +
		"folder. Not used when both `database_url` and `temporal.address` are given."},
	{
		Name: "database_url", Flag: "database-url",
		Effect: "PostgreSQL, as `postgres://USER:PASSWORD@HOST:PORT/DATABASE` or `host=… dbname=…`. Empty: the " +
			"local stack's own. The password is masked when the configuration is shown.",
	},

	{
		Name: "temporal.address", Unit: "host:port", Flag: "temporal-address",
		Effect: "Temporal's frontend. Empty: the local stack's own server.",
	},
	{Name: "temporal.namespace", Flag: "temporal-namespace", Effect: "Temporal namespace that workflows run in."},
	{Name: "temporal.api_key", Secret: true, Effect: "Bearer token, as Temporal Cloud takes it. Switches TLS on."},
	{Name: "temporal.tls.enabled", Effect: "Encrypt the connection to Temporal. On by itself when an API key, a " +
		"certificate, an authority or a server name is given."},
	{Name: "temporal.tls.cert_file", Unit: "path", Effect: "Client certificate for mutual TLS, in PEM."},
	{Name: "temporal.tls.cert_data", Effect: "The same as text instead of a file."},
	{Name: "temporal.tls.key_file", Unit: "path", Effect: "Key of the client certificate, in PEM."},
	{Name: "temporal.tls.key_data", Secret: true, Effect: "The same as text instead of a file."},
	{
		Name: "temporal.tls.ca_file", Unit: "path",
		Effect: "Authority that the server's certificate is checked against, in PEM. Without one: the system's.",
	},
	{Name: "temporal.tls.ca_data", Effect: "The same as text instead of a file."},
	{
		Name:   "temporal.tls.server_name",
		Effect: "Name that the server's certificate must be for. Empty: the host of `temporal.address`.",
	},
	{
		Name:   "temporal.tls.insecure_skip_verify",
		Effect: "Take any certificate. For tests alone: whoever stands in between can read and change everything.",
	},

	{Name: "http.addr", Unit: "host:port", Effect: "Where the HTTP API and the page listen. Anywhere but on " +
		"loopback the server starts only when there are API keys (`precis keys create`)."},
	{
		Name: "http.max_body_bytes", Unit: "bytes",
		Effect: "Largest body of a request. A larger one is refused as `too_large`.",
	},
	{
		Name: "http.request_timeout_seconds", Unit: "seconds",
		Effect: "Longest that the server works on a request; what a request asks to wait for a run comes on top.",
	},
	{
		Name: "http.requests_per_second", Unit: "requests per second",
		Effect: "Rate that one tenant may keep up, before it is answered `rate_limited`. 0: no limit.",
	},
	{Name: "http.burst", Unit: "requests", Effect: "How many requests of a tenant may come at once above that rate."},
	{
		Name: "http.max_concurrent_requests", Unit: "requests",
		Effect: "Requests that one tenant may have under way at once, event streams apart. 0: no limit.",
	},
	{
		Name: "http.max_event_streams", Unit: "streams",
		Effect: "Event streams that one tenant may have open at once. 0: no limit.",
	},
	{
		Name: "http.shutdown_seconds", Unit: "seconds",
		Effect: "How long a server that is told to stop lets requests finish.",
	},

	{Name: "vendors.<name>.type", Effect: "Protocol that the vendor speaks: `anthropic` (Messages), `openai` " +
		"(chat completions, and every compatible server), `openai-responses` (Responses), `google` " +
		"(generateContent) or `bedrock` (Anthropic's models through InvokeModel). Required for a vendor of your own."},
	{Name: "vendors.<name>.base_url", Unit: "URL", Effect: "Where its API begins: with `/v1` for the OpenAI " +
		"protocols, without a version for the others. Required for a vendor of your own."},
	{
		Name: "vendors.<name>.api_key", Secret: true,
		Effect: "Its key. Empty sends none, which servers of your own may take.",
	},
	{
		Name: "vendors.<name>.headers", Secret: true,
		Effect: "Headers that go with every request, as gateways ask for them.",
	},

	{
		Name:   "settings.trigger.auto",
		Effect: "Compact without being asked. Off: only by hand, also when an overflow is reported.",
	},
	{
		Name: "settings.trigger.token_limit", Unit: "tokens",
		Effect: "Context size at which a compaction starts. 0: `settings.trigger.fraction` of the window.",
	},
	{
		Name: "settings.trigger.eval_override", Unit: "tokens",
		Effect: "Beats `settings.trigger.token_limit`, for evaluations that need a fixed limit. 0: unset.",
	},
	{
		Name: "settings.trigger.fraction", Unit: "share of the window, 0 to 1",
		Effect: "Context size at which a compaction starts when no limit in tokens is given.",
	},
	{
		Name: "settings.trigger.turns", Unit: "user messages",
		Effect: "Number of genuine user messages to be summarised that starts a compaction, whatever its size.",
	},
	{Name: "settings.trigger.start.unused_tokens", Unit: "tokens", Effect: "Background compaction: begin to " +
		"compute when no more than this is left of the window. With `unused_percent` as well, the one reached " +
		"earlier counts. Both 0: nothing is computed ahead."},
	{
		Name: "settings.trigger.start.unused_percent", Unit: "share of the window, 0 to 1",
		Effect: "The same as a share of the window.",
	},
	{
		Name: "settings.trigger.apply.unused_tokens", Unit: "tokens",
		Effect: "Background compaction: apply what was prepared when no more than this is left of the window.",
	},
	{
		Name: "settings.trigger.apply.unused_percent", Unit: "share of the window, 0 to 1",
		Effect: "The same as a share of the window.",
	},
	{Name: "settings.summarizers", Effect: "Who writes the summary, tried in this order: `self` (the agent's own " +
		"model on its own cached prompt) or `VENDOR/MODEL`; an entry may also be an object `{model, " +
		"context_window, max_output}`. The digest, which needs no model, is always last."},
	{Name: "settings.force_external", Effect: "Leave `self` out of the list."},
	{Name: "settings.mode", Effect: "`explicit`: ask with our prompt. `beta`: the vendor's own compaction where " +
		"it has one."},
	{Name: "settings.prompt", Effect: "Name of the prompt to use. Empty: the one for the vendor and the occasion."},
	{Name: "settings.summary_max_tokens", Unit: "tokens", Effect: "Largest summary that is accepted."},
	{
		Name: "settings.breaker.failures", Unit: "failures in a row",
		Effect: "After so many, automatic runs stop asking the vendor for a while.",
	},
	{
		Name: "settings.breaker.cooldown_seconds", Unit: "seconds",
		Effect: "How long that while is, until one attempt is let through again.",
	},
	{
		Name:   "settings.preserve_last_user",
		Effect: "Summarise the last user message too, and keep it word for word as well.",
	},
	{
		Name:   "settings.relaxed_split_guard",
		Effect: "Let a split right after the first message stand, where otherwise everything would be summarised.",
	},
	{
		Name: "settings.tail_max_fraction", Unit: "share of the window, 0 to 1",
		Effect: "Most that the part kept word for word may take. A longer last turn is split at one of its steps.",
	},
	{
		Name: "settings.max_prompt_chars", Unit: "chars",
		Effect: "Most that a summarizer is given to read. Less where its window takes less.",
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
		Effect: "Tool results of so many last turns are sent in full; older long ones as a preview. 0: always in full.",
	},
	{
		Name: "settings.tool_result_preview_chars", Unit: "chars",
		Effect: "Size over which an older tool result becomes a preview.",
	},
	{
		Name: "settings.max_tool_result_tokens", Unit: "tokens",
		Effect: "Most that any one tool result may take in what is sent. 0: no cap.",
	},
	{Name: "settings.max_input_tokens", Unit: "tokens", Effect: "Most that a whole request may take; beyond it " +
		"the oldest turns are left out. 0: no limit, and a full context is compacted."},
	{
		Name: "settings.nudge_fraction", Unit: "share of the window, 0 to 1",
		Effect: "Fill from which a person is told that a compaction is due.",
	},
	{Name: "settings.digest", Effect: "When the deterministic digest may stand in for a model's summary: " +
		"`when_needed` (automatic runs, any run at or over the limit, and one by hand where no model can be asked " +
		"at all; one by hand below the limit whose models all failed ends `failed`, since nothing is lost by " +
		"asking again), `always`, `never` (the run fails and the context stays as it was)."},
	{Name: "settings.redact", Effect: "Take secrets out of what goes to an external summarizer. The transcript " +
		"stays as it was."},
	{
		Name: "settings.run_time_budget_seconds", Unit: "seconds",
		Effect: "Longest that a run may look for a summary before it takes the digest.",
	},
	{
		Name: "settings.run_token_budget", Unit: "tokens",
		Effect: "Most that a run may send to and receive from models. 0: no bound.",
	},
	{Name: "settings.tenant_daily_token_budget", Unit: "tokens", Effect: "Most that all runs of a tenant may send " +
		"to and receive from models on one day (UTC). Beyond it the digest stands in, and says so. For the " +
		"installation and for a tenant, not for a conversation. 0: no bound."},

	{
		Name: "prices.<vendor>/<model>.input", Unit: "USD per million tokens",
		Effect: "What input costs, to show what a run cost. Optional: without a price no cost is shown.",
	},
	{
		Name: "prices.<vendor>/<model>.cached_input", Unit: "USD per million tokens",
		Effect: "What input read from the vendor's prompt cache costs. 0: as much as any other.",
	},
	{
		Name: "prices.<vendor>/<model>.cache_write", Unit: "USD per million tokens",
		Effect: "What input written to the vendor's prompt cache costs. 0: as much as any other.",
	},
	{Name: "prices.<vendor>/<model>.output", Unit: "USD per million tokens", Effect: "What output costs."},

	{
		Name: "models.<vendor>/<model>.window", Unit: "tokens",
		Effect: "Context window of a model, over what the table of models says. 0: as the table has it.",
	},
	{
		Name: "models.<vendor>/<model>.max_output", Unit: "tokens",
		Effect: "Most that the model writes in one answer. 0: as the table has it.",
	},
	{Name: "models.<vendor>/<model>.native_compaction", Effect: "Forms in which the vendor compacts for the model " +
		"by itself, best first: `on_demand` and `edit` (Anthropic), `compact` (OpenAI Responses, xAI), or `none`. " +
		"Used with `settings.mode: beta`. Empty: as the table has it."},
	{
		Name:   "models.<vendor>/<model>.thinking",
		Effect: "Whether the model can reason before it answers: `yes` or `no`. Empty: as the table has it.",
	},
	{Name: "models.<vendor>/<model>.token_ratio", Unit: "ratio", Effect: "Tokens that the model's tokenizer makes " +
		"of one of the local estimate, until the vendor's own figure for a conversation has come: from 0.5 to 4. " +
		"0: as the table has it."},

	{Name: "memory.folder", Unit: "absolute path", Effect: "Folder in which the workers write what compactions " +
		"covered: in `TENANT/CONVERSATION` the segments, the notes and `INDEX.md`. They are written after each " +
		"compaction and each note, and again where they are missing. Set it on every worker or on one, and have " +
		"it on a disk that they share. Empty: nowhere; the API and MCP have the same."},

	{Name: "worker.task_queue", Effect: "Temporal task queue of workflows and of the stages that call no model."},
	{
		Name:   "worker.llm_task_queue",
		Effect: "Temporal task queue of model calls: one of its own, so that it can be rate limited on the server.",
	},
	{
		Name: "worker.concurrency", Unit: "stages",
		Effect: "Stages that one worker process runs at once, model calls apart.",
	},
	{
		Name: "worker.llm_concurrency", Unit: "calls",
		Effect: "Model calls that one worker process has under way at once.",
	},
	{Name: "worker.model_timeout_seconds", Unit: "seconds", Effect: "Longest that one request to a model may " +
		"take. Longer is a `timeout`, which is tried again within the run's time budget."},
	{
		Name: "worker.drain_seconds", Unit: "seconds",
		Effect: "How long a worker that is told to stop lets running stages finish before it leaves them to another.",
	},
	{Name: "worker.metrics_addr", Unit: "host:port", Effect: "Where the worker serves `/metrics`, `/healthz` and " +
		"`/readyz`. Empty: nowhere. `precis up` and `precis serve` have them on `http.addr`."},

	{Name: "log.level", Flag: "log-level", Effect: "Least that is logged: `debug`, `info`, `warn` or `error`."},
	{
		Name: "log.format", Flag: "log-format",
		Effect: "`text` for people, `json` for machines. Logs go to standard error.",
	},
}

// Describe gives the documentation of every key, in a fixed order.
func Describe() []Key {
	values := map[string]string{}
	for _, l := range leaves(reflect.ValueOf(Defaults()), nil) {
		if l.path[0] != "vendors" { // their own table shows those
			values[dotted(l.path)] = format(l.value)
		}
	}
	out := make([]Key, len(table))
	for i, k := range table {
		path := strings.Split(k.Name, ".")
		k.Default = values[k.Name]
		k.Type = describe(typeAt(reflect.TypeFor[Config](), path))
		k.Variable = Variable(path)
		out[i] = k
	}
	return out
}

// UsualVariable is a variable that other tools use too and that gives a key of ours its value, unless ours
// does.
type UsualVariable struct {
	Variable string
	Key      string
}

// Usual lists the variables of other tools that are honored. The ones of Temporal are those of its own
// clients' environment configuration.
func Usual() []UsualVariable {
	return []UsualVariable{
		{"ANTHROPIC_API_KEY", "vendors.anthropic.api_key"},
		{"ANTHROPIC_BASE_URL", "vendors.anthropic.base_url"},
		{"OPENAI_API_KEY", "vendors.openai.api_key"},
		{"OPENAI_BASE_URL", "vendors.openai.base_url"},
		{"XAI_API_KEY", "vendors.xai.api_key"},
		{"GEMINI_API_KEY", "vendors.google.api_key"},
		{"TEMPORAL_ADDRESS", "temporal.address"},
		{"TEMPORAL_NAMESPACE", "temporal.namespace"},
		{"TEMPORAL_API_KEY", "temporal.api_key"},
		{"TEMPORAL_TLS", "temporal.tls.enabled"},
		{"TEMPORAL_TLS_CLIENT_CERT_PATH", "temporal.tls.cert_file"},
		{"TEMPORAL_TLS_CLIENT_CERT_DATA", "temporal.tls.cert_data"},
		{"TEMPORAL_TLS_CLIENT_KEY_PATH", "temporal.tls.key_file"},
		{"TEMPORAL_TLS_CLIENT_KEY_DATA", "temporal.tls.key_data"},
		{"TEMPORAL_TLS_SERVER_CA_CERT_PATH", "temporal.tls.ca_file"},
		{"TEMPORAL_TLS_SERVER_CA_CERT_DATA", "temporal.tls.ca_data"},
		{"TEMPORAL_TLS_SERVER_NAME", "temporal.tls.server_name"},
		{"TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", "temporal.tls.insecure_skip_verify"},
	}
}

// Variable is the name of the environment variable for a key, "" when it would hold what a variable's name
// cannot, such as the slash and the dots of a model's name. Such a key is given with its section:
// PRECIS_PRICES='{openai/gpt-4.1: {input: 2}}'.
func Variable(path []string) string {
	for _, part := range path {
		if strings.ContainsAny(part, "/.-") {
			return ""
		}
	}
	return envPrefix + strings.ToUpper(strings.Join(path, levels))
}

// find gives the row of the table that a key belongs to.
func find(path []string) (Key, bool) {
	for _, k := range table {
		if matches(k.Name, path) {
			return k, true
		}
	}
	return Key{}, false
}

// typeAt is the type of the value at a key of the table.
func typeAt(t reflect.Type, path []string) reflect.Type {
	for _, name := range path {
		member, ok := membersOf(t).of(name)
		if !ok {
			panic("config: the table has the key " + dotted(path) + ", which Config has not")
		}
		t = member
	}
	return t
}
