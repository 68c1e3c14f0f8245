// Package config reads the configuration of precis and documents every key. Values come from these places, each of
// which overrides the ones before it:
//
//  1. the defaults (Defaults)
//  2. a YAML file: --config, else PRECIS_CONFIG, else precis.yaml in the working directory
//  3. the environment: the names that other tools use (ANTHROPIC_API_KEY, TEMPORAL_ADDRESS…), then
//     PRECIS_ plus the key with its levels joined by two underscores
//  4. flags
//
// An unknown key or an impossible value is an error that names the key and where it was given. All of them are
// reported at once. The tables in keys_*.go document the keys; docs/configuration.md and docs/settings.md are generated
// from them.
package config

import "precis/internal/contract"

// Config is the effective configuration. The JSON names are the keys of the file, the environment and the tables in
// keys_*.go.
type Config struct {
	// Dir is the folder of the local stack: private database, built programs, logs. "" leaves the choice to
	// package devstack: .precis in the checkout around the working directory, else in the home folder.
	Dir string `json:"dir"`
	// DatabaseURL is PostgreSQL's address, "" for the private one of the local stack.
	DatabaseURL string   `json:"database_url"`
	Temporal    Temporal `json:"temporal"`
	HTTP        HTTP     `json:"http"`
	// Vendors by name, always with those of Defaults.
	Vendors map[string]Vendor `json:"vendors"`
	// Settings of a compaction, for every tenant and conversation without settings of its own.
	Settings Settings `json:"settings"`
	// Prices by "VENDOR/MODEL". A model without a price has no known cost.
	Prices map[string]Price `json:"prices"`
	// Models by "VENDOR/MODEL": figures that override those of the table of models.
	Models  map[string]Model `json:"models"`
	Quotas  Quotas           `json:"quotas"`
	Memory  Memory           `json:"memory"`
	Replays Replays          `json:"replays"`
	Audit   Audit            `json:"audit"`
	Worker  Worker           `json:"worker"`
	Log     Log              `json:"log"`
}

// BoundRunSeconds returns the time that a run may take, in seconds, if a tenant or a conversation asks for the given
// one: the larger of worker.max_run_seconds and the installation's own setting is the most.
func (c Config) BoundRunSeconds(asked int) int {
	return min(asked, max(c.Worker.MaxRunSeconds, c.Settings.RunTimeBudgetSeconds))
}

// Temporal says where Temporal is and how to authenticate.
type Temporal struct {
	// Address is host:port of the frontend, "" for the local stack's own server.
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	// APIKey is sent as a bearer token, as Temporal Cloud takes it. It also enables TLS.
	APIKey string `json:"api_key"`
	TLS    TLS    `json:"tls"`
}

// TLS configures the connection to Temporal. Each certificate is given as a file or as PEM text, not both.
type TLS struct {
	// Enabled is implied by an API key and by any certificate: see Temporal.UsesTLS.
	Enabled bool `json:"enabled"`
	// CertFile and KeyFile are the client's certificate and key, for mutual TLS.
	CertFile string `json:"cert_file"`
	CertData string `json:"cert_data"`
	KeyFile  string `json:"key_file"`
	KeyData  string `json:"key_data"`
	// CAFile is what the server's certificate is checked against; the system's roots without one.
	CAFile string `json:"ca_file"`
	CAData string `json:"ca_data"`
	// ServerName is the name the server's certificate must be for; the host of the address without one.
	ServerName string `json:"server_name"`
	// InsecureSkipVerify takes any certificate. For tests only.
	InsecureSkipVerify bool `json:"insecure_skip_verify"`
}

// HTTP is the API's listener.
type HTTP struct {
	// Addr is host:port.
	Addr string `json:"addr"`
	// MaxBodyBytes bounds the body of one request.
	MaxBodyBytes int `json:"max_body_bytes"`
	// MaxTotalBodyBytes bounds the bodies of all requests in progress together.
	MaxTotalBodyBytes int `json:"max_total_body_bytes"`
	// RequestTimeoutSeconds bounds the work on one request, besides the time that it asks to wait for a run.
	RequestTimeoutSeconds int `json:"request_timeout_seconds"`
	// RequestsPerSecond and Burst limit the rate of one tenant; 0 requests per second: no limit.
	RequestsPerSecond float64 `json:"requests_per_second"`
	Burst             int     `json:"burst"`
	// MaxConcurrentRequests and MaxEventStreams limit what one tenant has open at the same time; 0: no limit.
	MaxConcurrentRequests int `json:"max_concurrent_requests"`
	MaxEventStreams       int `json:"max_event_streams"`
	// MaxWaitSeconds bounds how long a request waits for a run, whatever wait_seconds it asks for.
	MaxWaitSeconds int `json:"max_wait_seconds"`
	// AllowedHosts are names, beside those of loopback, to which pages without a key are served on a loopback address.
	AllowedHosts []string `json:"allowed_hosts"`
	// ShutdownSeconds is how long a stopping server waits for requests to finish.
	ShutdownSeconds int `json:"shutdown_seconds"`
}

// Vendor is one model API.
type Vendor struct {
	// Type is the protocol.
	Type contract.Protocol `json:"type"`
	// BaseURL is where the API begins: with /v1 for the OpenAI protocols, without a version for the others.
	BaseURL string `json:"base_url"`
	// APIKey is sent in the vendor's own header. "": none is sent, for servers that need none.
	APIKey string `json:"api_key"`
	// Headers are sent with every request, for gateways that need them.
	Headers map[string]string `json:"headers"`
	// Models are the names of the models that may be called, with * for any part of a name. Empty: at the vendor's
	// public address those that the installation names (settings.summarizers, models, prices) and, as the agent's own
	// model, those that the table of models has; at any other address all.
	Models []string `json:"models"`
}

// Price of a model, in US dollars per million tokens.
type Price struct {
	Input       float64 `json:"input"`
	CachedInput float64 `json:"cached_input"`
	CacheWrite  float64 `json:"cache_write"`
	Output      float64 `json:"output"`
}

// Model overrides what the table of models says of a model. Zero values keep the figures of the table.
type Model struct {
	// Window and MaxOutput in tokens.
	Window    int `json:"window"`
	MaxOutput int `json:"max_output"`
	// NativeCompaction are the forms of the vendor's own compaction, best first, or "none".
	NativeCompaction []string `json:"native_compaction"`
	// Thinking is "yes" or "no".
	Thinking string `json:"thinking"`
	// TokenRatio is the number of tokens that its tokenizer makes of one token of the local estimate.
	TokenRatio float64 `json:"token_ratio"`
}

// Quota is what one tenant may store; 0: no limit.
type Quota struct {
	// StorageBytes bounds the content that the tenant has stored.
	StorageBytes int `json:"storage_bytes"`
	// Conversations bounds the number of its conversations.
	Conversations int `json:"conversations"`
}

// Quotas are the quotas of every tenant. Only the installation sets them; a tenant's own settings cannot.
type Quotas struct {
	StorageBytes  int `json:"storage_bytes"`
	Conversations int `json:"conversations"`
	// Tenants are the quotas of single tenants by their ids, in place of the others.
	Tenants map[string]Quota `json:"tenants"`
}

// Of returns the quota of a tenant.
func (q Quotas) Of(tenant string) Quota {
	if own, ok := q.Tenants[tenant]; ok {
		return own
	}
	return Quota{StorageBytes: q.StorageBytes, Conversations: q.Conversations}
}

// Memory says where segments and notes are written, besides the database.
type Memory struct {
	// Folder is the absolute path under which the workers write each conversation's segments and INDEX.md; "": no files
	// are written. A tenant cannot set it: it could then have files written anywhere on the worker's machine.
	Folder string `json:"folder"`
}

// Replays bound the replays that call models again, retries of failed runs among them.
type Replays struct {
	// LivePerDay is how many of them a tenant may request in a day (UTC), LivePerRun how many there may be of one run.
	// With 0 there is no bound.
	LivePerDay int `json:"live_per_day"`
	LivePerRun int `json:"live_per_run"`
}

// Worker tunes the worker process.
type Worker struct {
	// TaskQueue is Temporal's queue of workflows and of the stages that call no model.
	TaskQueue string `json:"task_queue"`
	// LLMTaskQueue is the queue of model calls. It is separate so that slow vendors delay nothing else, and so that
	// the server can limit its rate.
	LLMTaskQueue string `json:"llm_task_queue"`
	// Concurrency is the maximum number of stages that run at the same time in one process, without model calls.
	Concurrency int `json:"concurrency"`
	// LLMConcurrency is the maximum number of concurrent model calls of one process.
	LLMConcurrency int `json:"llm_concurrency"`
	// ModelTimeoutSeconds bounds one request to a model.
	ModelTimeoutSeconds int `json:"model_timeout_seconds"`
	// MaxRunSeconds bounds settings.run_time_budget_seconds of tenants and conversations.
	MaxRunSeconds int `json:"max_run_seconds"`
	// DrainSeconds is how long a stopping worker waits for its stages to finish.
	DrainSeconds int `json:"drain_seconds"`
	// MetricsAddr is host:port of the worker's own listener for metrics and health, "" for none.
	MetricsAddr string `json:"metrics_addr"`
}

// Log says what is logged, on standard error.
type Log struct {
	// Level is debug, info, warn or error.
	Level string `json:"level"`
	// Format is text or json.
	Format string `json:"format"`
}

// Defaults returns the configuration when nothing is configured. The vendors' base URLs are the public ones of their
// own documentation.
func Defaults() Config {
	return Config{
		Temporal: Temporal{Namespace: "default"},
		HTTP: HTTP{
			Addr:                  "127.0.0.1:8700",
			MaxBodyBytes:          64 << 20,
			MaxTotalBodyBytes:     512 << 20,
			RequestTimeoutSeconds: 60,
			RequestsPerSecond:     500,
			Burst:                 1000,
			MaxConcurrentRequests: 200,
			MaxEventStreams:       1000,
			MaxWaitSeconds:        600,
			ShutdownSeconds:       25,
		},
		Vendors: map[string]Vendor{
			"anthropic": {Type: contract.ProtocolAnthropic, BaseURL: "https://api.anthropic.com"},
			"openai":    {Type: contract.ProtocolOpenAI, BaseURL: "https://api.openai.com/v1"},
			"xai":       {Type: contract.ProtocolOpenAI, BaseURL: "https://api.x.ai/v1"},
			"google":    {Type: contract.ProtocolGoogle, BaseURL: "https://generativelanguage.googleapis.com"},
		},
		Settings: DefaultSettings(),
		Quotas:   Quotas{StorageBytes: 100 << 30, Conversations: 1_000_000},
		Replays:  Replays{LivePerDay: 1000, LivePerRun: 20},
		Worker: Worker{
			TaskQueue:           "compaction",
			LLMTaskQueue:        "compaction-llm",
			Concurrency:         16,
			LLMConcurrency:      16,
			ModelTimeoutSeconds: 300,
			MaxRunSeconds:       3600,
			DrainSeconds:        25,
		},
		Log: Log{Level: "info", Format: "text"},
	}
}
