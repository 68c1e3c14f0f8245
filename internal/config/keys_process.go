package config

// processKeys document memory, audit, worker and log.
var processKeys = []Key{
	{Name: "memory.folder", Unit: "absolute path", Effect: "Folder in which the workers write what compactions " +
		"covered: in `TENANT/CONVERSATION` the segments, the notes and `INDEX.md`. They are written after each " +
		"compaction and each note, and restored where they are missing. Set it on one worker, or on all of them with " +
		"a disk that they share. Empty: no files; the API and MCP give the same."},

	{Name: "replays.live_per_day", Unit: "replays", Effect: "Most replays that call models again, retries of failed " +
		"runs among them, that a tenant may request on one day (UTC). 0: no limit."},
	{Name: "replays.live_per_run", Unit: "replays", Effect: "Most of them that there may be of one run. 0: no limit."},
	{Name: "audit.signing_key", Unit: "file or PEM text", Secret: true, Effect: "Ed25519 private key (PKCS #8) with " +
		"which every process signs the records that it seals, so that whoever can write to the database cannot " +
		"rewrite them with all their hashes. Give it to all processes, and keep it out of the database's backups. " +
		"Empty: records are not signed."},
	{Name: "audit.verify_key", Unit: "file or PEM text", Effect: "Ed25519 public key with which `precis verify` " +
		"checks the signatures, for a place that must not have the private one. Empty: that of `audit.signing_key`; " +
		"without both, signatures are not checked."},

	{Name: "worker.task_queue", Effect: "Temporal task queue of workflows and of the stages that call no model."},
	{
		Name:   "worker.llm_task_queue",
		Effect: "Temporal task queue of model calls. It is separate so that the server can limit its rate.",
	},
	{
		Name: "worker.concurrency", Unit: "stages",
		Effect: "Maximum number of stages that one worker process runs at the same time, model calls not counted.",
	},
	{
		Name: "worker.llm_concurrency", Unit: "calls",
		Effect: "Maximum number of concurrent model calls of one worker process.",
	},
	{Name: "worker.model_timeout_seconds", Unit: "seconds", Effect: "Most time that one request to a model may " +
		"take. A longer one is a `timeout`, which is retried within the run's time budget."},
	{
		Name: "worker.max_run_seconds", Unit: "seconds",
		Effect: "Most time that a tenant or a conversation may allow a run by `run_time_budget_seconds`. The " +
			"installation's own `settings.run_time_budget_seconds` may be larger; then that is the bound.",
	},
	{
		Name: "worker.drain_seconds", Unit: "seconds",
		Effect: "How long a stopping worker waits for running stages to finish before it leaves them to another " +
			"worker.",
	},
	{Name: "worker.metrics_addr", Unit: "host:port", Effect: "Where the worker serves `/metrics`, `/healthz` and " +
		"`/readyz`. Empty: none. `precis up` and `precis serve` have them on `http.addr`."},

	{Name: "log.level", Flag: "log-level", Effect: "Lowest level that is logged: `debug`, `info`, `warn` or `error`."},
	{
		Name: "log.format", Flag: "log-format",
		Effect: "`text` for people, `json` for machines. Logs go to standard error.",
	},
}
