package contract

// Protocol is the API that a vendor's endpoint speaks: the type of a vendor in the configuration.
type Protocol = string

// The protocols.
const (
	ProtocolAnthropic       Protocol = "anthropic"        // Anthropic Messages
	ProtocolOpenAI          Protocol = "openai"           // OpenAI chat completions, and everything compatible with it
	ProtocolOpenAIResponses Protocol = "openai-responses" // OpenAI Responses
	ProtocolGoogle          Protocol = "google"           // Google's generateContent
	ProtocolBedrock         Protocol = "bedrock"          // Anthropic Messages by Amazon Bedrock's InvokeModel
)

// Protocols lists the protocols.
var Protocols = []Protocol{
	ProtocolAnthropic, ProtocolOpenAI, ProtocolOpenAIResponses, ProtocolGoogle, ProtocolBedrock,
}
