package config

// modelKeys document prices and facts of models.
var modelKeys = []Key{
	{
		Name: "prices.<vendor>/<model>.input", Unit: "USD per million tokens",
		Effect: "Price of input, to show what a run cost. Optional: without a price no cost is shown.",
	},
	{
		Name: "prices.<vendor>/<model>.cached_input", Unit: "USD per million tokens",
		Effect: "Price of input read from the vendor's prompt cache. 0: the price of other input.",
	},
	{
		Name: "prices.<vendor>/<model>.cache_write", Unit: "USD per million tokens",
		Effect: "Price of input written to the vendor's prompt cache. 0: the price of other input.",
	},
	{Name: "prices.<vendor>/<model>.output", Unit: "USD per million tokens", Effect: "Price of output."},

	{
		Name: "models.<vendor>/<model>.window", Unit: "tokens",
		Effect: "Context window of the model. 0: the one in the table of models.",
	},
	{
		Name: "models.<vendor>/<model>.max_output", Unit: "tokens",
		Effect: "Largest answer of the model. 0: the one in the table of models.",
	},
	{Name: "models.<vendor>/<model>.native_compaction", Effect: "Forms of the vendor's own compaction for the " +
		"model, best first: `on_demand` and `edit` (Anthropic), `compact` (OpenAI Responses, xAI), or `none`. " +
		"Used with `settings.mode: beta`. Empty: as in the table of models."},
	{
		Name:   "models.<vendor>/<model>.thinking",
		Effect: "Whether the model can reason before it answers: `yes` or `no`. Empty: as in the table of models.",
	},
	{Name: "models.<vendor>/<model>.token_ratio", Unit: "ratio", Effect: "Number of tokens that the model's " +
		"tokenizer makes of one token of the local estimate, used until the vendor reports its own figure for a " +
		"conversation: from 0.5 to 4. 0: as in the table of models."},
}
