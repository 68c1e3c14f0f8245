package config

// quotaKeys document the quotas of tenants.
var quotaKeys = []Key{
	{
		Name: "quotas.storage_bytes", Unit: "bytes",
		Effect: "Largest size of what one tenant has stored: messages, system prompts, tools, settings, metadata, " +
			"live state and notes. Beyond it the answer is `quota_exceeded`. 0: no limit.",
	},
	{
		Name: "quotas.conversations", Unit: "conversations",
		Effect: "Maximum number of conversations of one tenant, those whose content was deleted not " +
			"counted. 0: no limit.",
	},
	{
		Name: "quotas.tenants.<tenant>.storage_bytes", Unit: "bytes",
		Effect: "The same for one tenant. An entry for a tenant replaces both quotas: one that is left " +
			"out is no limit.",
	},
	{
		Name: "quotas.tenants.<tenant>.conversations", Unit: "conversations",
		Effect: "The same for one tenant.",
	},
}
