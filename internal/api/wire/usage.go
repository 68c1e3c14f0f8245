package wire

// RunModelUsage sums the calls of one model.
type RunModelUsage struct {
	_ struct{} `doc:"The sum of the calls of one model, including failed ones, in tokens. input includes what was read from and written to the vendor's cache."`

	Model       string `json:"model" doc:"VENDOR/MODEL."`
	Input       int64  `json:"input"`
	CachedInput int64  `json:"cached_input"`
	CacheWrite  int64  `json:"cache_write"`
	Output      int64  `json:"output"`
	Calls       int    `json:"calls"`
}

// RunCost is what model calls cost by the configured prices.
type RunCost struct {
	_ struct{} `doc:"What model calls cost at the configured prices."`

	USD        float64  `json:"usd" doc:"The sum over the models that have a price."`
	NoPriceFor []string `json:"no_price_for,omitempty" doc:"The models without a price. Their tokens are not in the sum."`
}

// RunGroup sums runs with the same outcome and error kind.
type RunGroup struct {
	_ struct{} `doc:"The sum of the runs with the same outcome and error kind."`

	Outcome   string          `json:"outcome" doc:"unfinished for runs that have not ended."`
	ErrorKind string          `json:"error_kind"`
	Runs      int             `json:"runs"`
	Digests   int             `json:"digests" doc:"How many of the summaries are digests."`
	Undone    int             `json:"undone" doc:"How many of the runs were undone."`
	MedianMS  int64           `json:"median_ms" doc:"Median of the time from start to end, in milliseconds."`
	P95MS     int64           `json:"p95_ms" doc:"95th percentile of the time from start to end, in milliseconds."`
	Usage     RunUsage        `json:"usage"`
	Models    []RunModelUsage `json:"models" doc:"The same model calls, by model."`
	Cost      *RunCost        `json:"cost" doc:"What the model calls cost, or null: no price is configured for any of the models."`
}

// RunSummary is the answer of /v1/runs/summary.
type RunSummary struct {
	Groups []RunGroup `json:"groups" doc:"One sum for each outcome and error kind that occurs."`
}

// RunUsageGroup is a sum of model calls.
type RunUsageGroup struct {
	_ struct{} `doc:"A sum of model calls, in tokens. input includes what was read from and written to the vendor's cache."`

	Key         string   `json:"key" doc:"The tenant, the conversation, VENDOR/MODEL, or the day (UTC, 2006-01-02)."`
	Input       int64    `json:"input"`
	CachedInput int64    `json:"cached_input"`
	CacheWrite  int64    `json:"cache_write"`
	Output      int64    `json:"output"`
	Calls       int      `json:"calls"`
	Failed      int      `json:"failed" doc:"Calls without a usable answer."`
	Lost        int      `json:"lost" doc:"Calls whose answer never arrived. They may have been billed, and are not in the sums."`
	Cost        *RunCost `json:"cost" doc:"What the calls cost, or null: no price is configured for any of the models."`
}

// UsageList is the answer of /v1/usage.
type UsageList struct {
	GroupBy string          `json:"group_by"`
	Usage   []RunUsageGroup `json:"usage"`
}
