// Package config is the one place where the program's configuration comes from and where every key of it
// is documented. Values are taken, each over the one before, from
//
//  1. the defaults (Defaults)
//  2. a YAML file: --config, else PRECIS_CONFIG, else precis.yaml in the working directory
//  3. the environment: the names that other tools use (ANTHROPIC_API_KEY, TEMPORAL_ADDRESS…), then
//     PRECIS_ plus the key with its levels joined by two underscores
//  4. flags
//
// An unknown key or an impossible value is an error that names the key and where it was given; all of them
// are reported at once. docs/configuration.md is generated from the table in keys.go.
package config

import "precis/pipeline"

// Config is the effective configuration. The JSON names are the keys of the file, the environment and the
// table in keys.go.
type Config struct {
	// Dir is the folder of the local stack: private database, built programs, logs. "" leaves the choice to
	// package devstack: .precis in the checkout that one stands in, else in the home folder.
	Dir string `json:"dir"`
	// DatabaseURL is PostgreSQL's address, "" for the private one of the local stack.
	DatabaseURL string   `json:"database_url"`
	Temporal    Temporal `json:"temporal"`
	HTTP        HTTP     `json:"http"`
	// Vendors by name. Those of Defaults are always there.
	Vendors map[string]Vendor `json:"vendors"`
	// Settings of a compaction, for every tenant and conversation that does not say otherwise.
	Settings pipeline.Settings `json:"settings"`
	// Prices by "VENDOR/MODEL". A model that is not in it has no known cost.
	Prices map[string]Price `json:"prices"`
	// Models by "VENDOR/MODEL": what is known of them, over the table of models.
	Models map[string]Model `json:"models"`
	Memory Memory           `json:"memory"`
	Worker Worker           `json:"worker"`
	Log    Log              `json:"log"`
}

// Temporal says where Temporal is and how to get in.
type Temporal struct {
	// Address is host:port of the frontend, "" for the local stack's own server.
	Address   string `json:"address"`
	Namespace string `json:"namespace"`
	// APIKey is sent as a bearer token, as Temporal Cloud takes it. It switches TLS on.
	APIKey string `json:"api_key"`
	TLS    TLS    `json:"tls"`
}

// TLS of the connection to Temporal. Each certificate is given as a file or as PEM text, not both.
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
	// InsecureSkipVerify takes any certificate. For tests alone.
	InsecureSkipVerify bool `json:"insecure_skip_verify"`
}

// HTTP is the API's listener.
type HTTP struct {
	// Addr is host:port.
	Addr string `json:"addr"`
	// MaxBodyBytes bounds the body of one request.
	MaxBodyBytes int `json:"max_body_bytes"`
	// RequestTimeoutSeconds bounds the work on one request, beside what it asks to wait for a run.
	RequestTimeoutSeconds int `json:"request_timeout_seconds"`
	// RequestsPerSecond and Burst limit the rate of one tenant; 0 requests per second: no limit.
	RequestsPerSecond float64 `json:"requests_per_second"`
	Burst             int     `json:"burst"`
	// MaxConcurrentRequests and MaxEventStreams limit what one tenant has open at once; 0: no limit.
	MaxConcurrentRequests int `json:"max_concurrent_requests"`
	MaxEventStreams       int `json:"max_event_streams"`
	// ShutdownSeconds is how long a server that is told to stop lets requests finish.
	ShutdownSeconds int `json:"shutdown_seconds"`
}

// The protocols that a vendor may speak.
const (
	TypeAnthropic       = "anthropic"        // Anthropic Messages
	TypeOpenAI          = "openai"           // OpenAI chat completions, and everything compatible with it
	TypeOpenAIResponses = "openai-responses" // OpenAI Responses
	TypeGoogle          = "google"           // Google's generateContent
	TypeBedrock         = "bedrock"          // Anthropic Messages through Amazon Bedrock's InvokeModel
)

// Vendor is one model API.
type Vendor struct {
	// Type is the protocol, one of the Type constants.
	Type string `json:"type"`
	// BaseURL is where the API begins: with /v1 for the OpenAI protocols, without a version for the others.
	BaseURL string `json:"base_url"`
	// APIKey is sent the vendor's way. "" sends none, which servers of one's own take.
	APIKey string `json:"api_key"`
	// Headers are sent with every request, as gateways ask for them.
	Headers map[string]string `json:"headers"`
}

// Price of a model, in US dollars per million tokens.
type Price struct {
	Input       float64 `json:"input"`
	CachedInput float64 `json:"cached_input"`
	CacheWrite  float64 `json:"cache_write"`
	Output      float64 `json:"output"`
}

// Model is what the configuration says of a model. What it does not set is as the table of models has it.
type Model struct {
	// Window and MaxOutput in tokens.
	Window    int `json:"window"`
	MaxOutput int `json:"max_output"`
	// NativeCompaction are the forms in which the vendor compacts by itself, best first, or "none".
	NativeCompaction []string `json:"native_compaction"`
	// Thinking is "yes" or "no".
	Thinking string `json:"thinking"`
	// TokenRatio is how many tokens its tokenizer makes of one of the local estimate, 0: as the table has it.
	TokenRatio float64 `json:"token_ratio"`
}

// Memory says where what compactions covered is written beside the database.
type Memory struct {
	// Folder is the absolute path under which the workers write each conversation's segments and INDEX.md, "": nowhere.
	// It is the installation's alone: whoever could choose it could write anywhere on the worker's machine.
	Folder string `json:"folder"`
}

// Worker tunes the worker process.
type Worker struct {
	// TaskQueue is Temporal's queue of workflows and of the stages that call no model.
	TaskQueue string `json:"task_queue"`
	// LLMTaskQueue is the queue of model calls: apart from the others, so that slow vendors hold nothing else up
	// and the server can limit its rate.
	LLMTaskQueue string `json:"llm_task_queue"`
	// Concurrency is the number of stages that run at once in one process, model calls apart.
	Concurrency int `json:"concurrency"`
	// LLMConcurrency is the number of model calls under way at once in one process.
	LLMConcurrency int `json:"llm_concurrency"`
	// ModelTimeoutSeconds bounds one request to a model.
	ModelTimeoutSeconds int `json:"model_timeout_seconds"`
	// DrainSeconds is how long a worker that is told to stop lets stages finish.
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

// Defaults is the configuration when nothing is configured. The vendors' base URLs are the public ones that
// their own documentation gives.
func Defaults() Config {
	return Config{
		Temporal: Temporal{Namespace: "default"},
		HTTP: HTTP{
			Addr:                  "127.0.0.1:8700",
			MaxBodyBytes:          64 << 20,
			RequestTimeoutSeconds: 60,
			RequestsPerSecond:     500,
			Burst:                 1000,
			MaxConcurrentRequests: 200,
			MaxEventStreams:       1000,
			ShutdownSeconds:       25,
		},
		Vendors: map[string]Vendor{
			"anthropic": {Type: TypeAnthropic, BaseURL: "https://api.anthropic.com"},
			"openai":    {Type: TypeOpenAI, BaseURL: "https://api.openai.com/v1"},
			"xai":       {Type: TypeOpenAI, BaseURL: "https://api.x.ai/v1"},
			"google":    {Type: TypeGoogle, BaseURL: "https://generativelanguage.googleapis.com"},
		},
		Settings: pipeline.DefaultSettings(),
		Worker: Worker{
			TaskQueue:           "compaction",
			LLMTaskQueue:        "compaction-llm",
			Concurrency:         16,
			LLMConcurrency:      16,
			ModelTimeoutSeconds: 300,
			DrainSeconds:        25,
		},
		Log: Log{Level: "info", Format: "text"},
	}
}
