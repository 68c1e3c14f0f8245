package llm

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"precis/internal/contract"
)

// Vendor is one endpoint that serves models.
type Vendor struct {
	// Name is the part before the slash of a model's id: "anthropic", "openai", "xai", or the name that the
	// configuration gives to a compatible server.
	Name string
	// Type is the protocol, one of contract.Protocols.
	Type contract.Protocol
	// BaseURL is where the API is, in the form of the SDKs: without "/v1" for Anthropic, with it for OpenAI-compatible
	// servers. "": the vendor's own, for a Name with a public address.
	BaseURL string
	// APIKey may be empty for a server that needs none.
	APIKey string
	// Headers are sent with every request, after our own.
	Headers map[string]string
	// Models is what is known of the vendor's models: it bounds the output that a request asks for.
	Models Models
	// Transport, if set, wraps the connections, to measure and trace them.
	Transport func(http.RoundTripper) http.RoundTripper
}

// transport returns the round tripper of the vendor's requests.
func (v Vendor) transport() http.RoundTripper {
	if v.Transport == nil {
		return statusTransport{connections}
	}
	return statusTransport{v.Transport(connections)}
}

// String names the vendor without its key and headers. It is used wherever a whole configuration is printed.
func (v Vendor) String() string { return fmt.Sprintf("%s (%s)", v.Name, v.Type) }

// GoString is String, for %#v.
func (v Vendor) GoString() string { return v.String() }

// LogValue is String, for structured logs.
func (v Vendor) LogValue() slog.Value { return slog.StringValue(v.String()) }

// ownAddresses are the base URLs of vendors that need none in the configuration, from their documentation.
var ownAddresses = map[string]string{
	"anthropic": "https://api.anthropic.com",
	"openai":    "https://api.openai.com/v1",
	"xai":       "https://api.x.ai/v1",
	"google":    "https://generativelanguage.googleapis.com",
}

// New makes the client for a vendor. It does no I/O, except that for Bedrock it reads the configuration files of AWS.
func New(v Vendor) (Client, error) {
	if v.BaseURL != "" {
		u, err := url.Parse(v.BaseURL)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, fmt.Errorf("vendor %q: the base URL is not an http or https address", v.Name)
		}
	}
	base := v.BaseURL
	if base == "" {
		base = ownAddresses[v.Name]
	}
	if base == "" {
		return nil, fmt.Errorf("vendor %q has no base URL: set one, since the name has no public address", v.Name)
	}
	c := &client{vendor: v, own: v.Type, protocols: map[string]protocol{}}
	switch v.Type {
	case contract.ProtocolAnthropic:
		c.protocols[contract.ProtocolAnthropic] = newAnthropic(v, base)
	case contract.ProtocolOpenAI, contract.ProtocolOpenAIResponses:
		chat := newOpenAI(v, base)
		c.protocols[contract.ProtocolOpenAI] = chat
		if Speaks(v, contract.ProtocolOpenAIResponses) {
			c.protocols[contract.ProtocolOpenAIResponses] = &responsesProtocol{openaiProtocol: chat}
		}
	case contract.ProtocolGoogle:
		c.protocols[contract.ProtocolGoogle] = newGoogle(v, base)
	case contract.ProtocolBedrock:
		p, err := newBedrock(v, base)
		if err != nil {
			return nil, err
		}
		c.own = contract.ProtocolAnthropic
		c.protocols[contract.ProtocolAnthropic] = p
	case "":
		return nil, fmt.Errorf("vendor %q has no type: set one of %s", v.Name, strings.Join(contract.Protocols, ", "))
	default:
		return nil, fmt.Errorf("vendor %q has the unknown type %q: set one of %s", v.Name, v.Type,
			strings.Join(contract.Protocols, ", "))
	}
	return c, nil
}

// Speaks reports whether a vendor takes requests in a format, one of contract.Protocols. OpenAI and xAI serve the
// Responses API besides chat completions. A compatible server is assumed to do so when its type says it.
func Speaks(v Vendor, format string) bool {
	switch {
	case v.Type == format:
		return true
	case v.Type == contract.ProtocolBedrock:
		return format == contract.ProtocolAnthropic
	case v.Type == contract.ProtocolOpenAI && format == contract.ProtocolOpenAIResponses:
		return v.Name == "openai" || v.Name == "xai"
	}
	return v.Type == contract.ProtocolOpenAIResponses && format == contract.ProtocolOpenAI
}
