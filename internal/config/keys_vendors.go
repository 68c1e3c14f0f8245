package config

// vendorKeys document the vendors of models.
var vendorKeys = []Key{
	{Name: "vendors.<name>.type", Effect: "Protocol that the vendor speaks: `anthropic` (Messages), `openai` " +
		"(chat completions, and every compatible server), `openai-responses` (Responses), `google` " +
		"(generateContent) or `bedrock` (Anthropic's models through InvokeModel). Required for a vendor of your own."},
	{Name: "vendors.<name>.base_url", Unit: "URL", Effect: "Where the API begins: with `/v1` for the OpenAI " +
		"protocols, without a version for the others. Required for a vendor of your own."},
	{
		Name: "vendors.<name>.api_key", Secret: true,
		Effect: "API key. Empty: none is sent, for servers of your own that need none.",
	},
	{
		Name: "vendors.<name>.headers", Secret: true,
		Effect: "Headers that are sent with every request, for gateways that need them.",
	},
	{Name: "vendors.<name>.models", Effect: "Names of the models that may be called, `*` stands for any part of a " +
		"name. Empty: at a vendor's public address those that `settings.summarizers`, `models` or `prices` of the " +
		"installation name, and the agent's own if the table of models has it; at any other address all. A tenant or " +
		"a request that names another is refused it: the next summarizer is used, and the record says why."},
}
