// Package llm asks a model for a summary: one streaming call, over the vendor's official SDK, with its
// outcome told in the project's own error kinds.
//
//	llm.go        the types and New
//	call.go       one call from request to outcome, the same for every vendor; body.go puts keys into a body
//	anthropic.go  the Anthropic Messages protocol; bedrock.go the same through Amazon Bedrock
//	openai.go     the OpenAI chat completions protocol, for every server that speaks it
//	responses.go  the OpenAI Responses protocol
//	google.go     Google's generateContent
//	native.go     the vendors' own compactions: how each is asked for, and what it gives back
//	answer.go     is what a model answered usable at all (ClassifyAnswer)
//	classify.go   which kind of failure is this (Classify); facts.go reads what an error says, retryafter.go
//	              how long it asks to wait
//	models.go     what is known of a model: window, output limit, abilities
//
// No text of a conversation and no key is ever put into an error or a log line.
package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"precis/pipeline"
)

// The protocols that a vendor may speak: the values of Vendor.Type.
const (
	TypeAnthropic       = "anthropic"        // Anthropic Messages
	TypeOpenAI          = "openai"           // OpenAI chat completions, and all that is compatible with it
	TypeOpenAIResponses = "openai-responses" // OpenAI Responses
	TypeGoogle          = "google"           // Google's generateContent
	TypeBedrock         = "bedrock"          // Anthropic Messages through Amazon Bedrock's InvokeModel
)

// Types lists the protocols.
var Types = []string{TypeAnthropic, TypeOpenAI, TypeOpenAIResponses, TypeGoogle, TypeBedrock}

// ReasonSummarization is the inference reason that every request of a compaction carries.
const ReasonSummarization = "agent-summarization"

// Vendor is one endpoint that serves models.
type Vendor struct {
	// Name is the vendor's name as it stands before the slash of a model's id: "anthropic", "openai",
	// "xai", or any name that the configuration gives to a compatible server.
	Name string
	// Type is the protocol, one of the Type constants.
	Type string
	// BaseURL is where the API is: for Anthropic without "/v1", for OpenAI-compatible servers with it, as
	// their SDKs have it. Empty: the vendor's own, if Name is one that has an address of its own.
	BaseURL string
	// APIKey may be empty for a server that asks for none.
	APIKey string
	// Headers are sent with every request, after our own.
	Headers map[string]string
	// Models is what is known of the vendor's models: it bounds the output that a request asks for.
	Models Models
	// Transport, if set, stands around the connections, to measure and trace them.
	Transport func(http.RoundTripper) http.RoundTripper
}

// transport is what requests go through.
func (v Vendor) transport() http.RoundTripper {
	if v.Transport == nil {
		return statusTransport{connections}
	}
	return statusTransport{v.Transport(connections)}
}

// String tells the vendor without its key and headers, also where a whole configuration is printed.
func (v Vendor) String() string { return fmt.Sprintf("%s (%s)", v.Name, v.Type) }

// GoString is String, for %#v.
func (v Vendor) GoString() string { return v.String() }

// LogValue is String, for structured logs.
func (v Vendor) LogValue() slog.Value { return slog.StringValue(v.String()) }

// Metadata says for whom and why a request is made, for metering on the vendor's side or in a gateway.
type Metadata struct {
	// Reason is the inference reason; empty: ReasonSummarization.
	Reason string
	// Feature is the name of the prompt.
	Feature string
	RunID   string
	Tenant  string
}

// Call is one request for a summary. Either Body is set, or System and User are.
type Call struct {
	// Model is the vendor's own name of the model, without the vendor before it.
	Model string
	// System and User are an external request: the compactor's system prompt and one user message.
	System, User string
	// Body is a request of the agent's own with the instruction appended. It is sent byte for byte; when it
	// says nothing of streaming, that is switched on by keys put in before its last brace.
	Body []byte
	// Format is the format that Body is written in, one of the Type constants; empty: the vendor's own.
	Format string
	// Native asks for the vendor's own compaction; Body is then what NativeBody made for that form.
	Native NativeForm
	// MaxOutput bounds the answer of an external request, in tokens. It is brought into 1 to the model's
	// limit; 0 is the model's limit where it is known. A Body has its own.
	MaxOutput int
	Meta      Metadata
	// OnProgress is told how many chars of text and reasoning have arrived: once with 0 before the request
	// is sent, then with everything that comes in, keep-alives too. It is called on the goroutine of Call.
	OnProgress func(chars int)
}

// Usage is what the vendor says that one request cost, in tokens. All zero: it did not say.
type Usage struct {
	// Input is the whole prompt, what came from a cache and what was written to one included.
	Input int
	// CachedInput is the part of Input that was read from a cache.
	CachedInput int
	// CacheWrite is the part of Input that was written to a cache.
	CacheWrite int
	// Output includes reasoning.
	Output int
}

// Result is what came of a call. Beside an error it holds what is known all the same: the raw answer,
// the request, usage. The text of an answer that broke off is in Raw only; that of one which was cut off at
// its output limit, or refused, is told, with its Finish.
type Result struct {
	pipeline.Answer
	Usage Usage
	// Raw is the body of the vendor's answer as it came, for the record.
	Raw []byte
	// RequestBody is what was sent.
	RequestBody []byte
	// RequestID is the vendor's id of the request, for its support.
	RequestID string
	// Model is the model that answered, by the vendor's word.
	Model string
	// Status is the HTTP status, 0 when none arrived.
	Status int
	// Native is what the vendor's own compaction gave, a JSON array of what goes back to it unchanged: content
	// blocks of one message for Anthropic, items for the Responses API. nil: none was asked for, or none came.
	Native json.RawMessage
	// NativeText is what of it can be read: Anthropic's summary, the messages that OpenAI keeps.
	NativeText string
}

// Client asks the models of one vendor. It is safe for concurrent use.
type Client interface {
	// Call makes one request and reads its answer, within the deadline of ctx. The error is a
	// *pipeline.Error, also for an answer with status 200 that cannot be a summary: cut off, empty,
	// refused, a tool call and nothing else, without a finish reason, broken. A connection that fails
	// within a second and before anything was answered is tried once more; any other retry is the caller's.
	Call(ctx context.Context, c Call) (Result, error)
}

// New makes the client for a vendor. It does no I/O, but for Bedrock, where it reads AWS's configuration files.
func New(v Vendor) (Client, error) {
	if v.BaseURL != "" {
		u, err := url.Parse(v.BaseURL)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("vendor %q: base URL is not an http or https address", v.Name)
		}
	}
	base := v.BaseURL
	if base == "" {
		base = ownAddresses[v.Name]
	}
	if base == "" {
		return nil, fmt.Errorf("vendor %q: no base URL given, and the name has none of its own", v.Name)
	}
	c := &client{vendor: v, own: v.Type, protocols: map[string]protocol{}}
	switch v.Type {
	case TypeAnthropic:
		c.protocols[TypeAnthropic] = newAnthropic(v, base)
	case TypeOpenAI, TypeOpenAIResponses:
		chat := newOpenAI(v, base)
		c.protocols[TypeOpenAI] = chat
		if Speaks(v, TypeOpenAIResponses) {
			c.protocols[TypeOpenAIResponses] = &responsesProtocol{openaiProtocol: chat}
		}
	case TypeGoogle:
		c.protocols[TypeGoogle] = newGoogle(v, base)
	case TypeBedrock:
		p, err := newBedrock(v, base)
		if err != nil {
			return nil, err
		}
		c.own = TypeAnthropic
		c.protocols[TypeAnthropic] = p
	case "":
		return nil, fmt.Errorf("vendor %q: no type given, set it to one of %s", v.Name, strings.Join(Types, ", "))
	default:
		return nil, fmt.Errorf("vendor %q: unknown type %q, use one of %s", v.Name, v.Type, strings.Join(Types, ", "))
	}
	return c, nil
}

// Speaks says whether a vendor takes requests that are written in a format, one of the Type constants. OpenAI
// and xAI serve the Responses API beside chat completions; a compatible server is taken to do so when its type
// says it.
func Speaks(v Vendor, format string) bool {
	switch {
	case v.Type == format:
		return true
	case v.Type == TypeBedrock:
		return format == TypeAnthropic
	case v.Type == TypeOpenAI && format == TypeOpenAIResponses:
		return v.Name == "openai" || v.Name == "xai"
	}
	return v.Type == TypeOpenAIResponses && format == TypeOpenAI
}

// ownAddresses are the base URLs of vendors that need none in the configuration, as their documentation has them.
var ownAddresses = map[string]string{
	"anthropic": "https://api.anthropic.com",
	"openai":    "https://api.openai.com/v1",
	"xai":       "https://api.x.ai/v1",
	"google":    "https://generativelanguage.googleapis.com",
}
