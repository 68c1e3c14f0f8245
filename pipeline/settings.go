package pipeline

import (
	"bytes"
	"encoding/json"
)

// The defaults. Settings can be given for all, for a tenant and for a conversation; the nearest one counts.
const (
	// SelfSummaryContextWindowFraction is the share of the window at which a compaction starts: late enough to use most
	// of the window, early enough that the request for the summary still fits.
	SelfSummaryContextWindowFraction = 0.9
	// SelfSummaryNumTurns is the number of genuine user messages that starts a compaction whatever the size.
	SelfSummaryNumTurns = 1000
	// MaxSummarizationPromptChars bounds the rendered input of a summarizer, in chars.
	MaxSummarizationPromptChars = 3_200_000
	// ToolMessageDropThreshold is the share of tool messages from which they are dropped first.
	ToolMessageDropThreshold = 0.25
	// DefaultMinUsefulChars is the size below which a cut message is less useful than a placeholder.
	DefaultMinUsefulChars = 200
	// MinAnthropicCompactionInputTokens is the smallest trigger that Anthropic's compaction edit accepts.
	MinAnthropicCompactionInputTokens = 50_000
	// DefaultContextWindow is assumed for an unknown model and reported as a guess, in tokens.
	DefaultContextWindow = 128_000
)

// Threshold is a point on the way to a full window, given as room that is left: in tokens, as a share of the window
// from 0 to 1, or both, in which case the one that is reached earlier counts. Zero fields are unset.
type Threshold struct {
	UnusedTokens  int     `json:"unused_tokens,omitempty"`
	UnusedPercent float64 `json:"unused_percent,omitempty"`
}

// Set reports whether the threshold is given.
func (t Threshold) Set() bool { return t.UnusedTokens > 0 || t.UnusedPercent > 0 }

// TriggerSettings says when a compaction starts automatically.
type TriggerSettings struct {
	// Auto switches automatic compaction on. Default true.
	Auto bool `json:"auto"`
	// TokenLimit is the configured limit in tokens, 0 to use Fraction of the window.
	TokenLimit int `json:"token_limit,omitempty"`
	// EvalOverride takes precedence over TokenLimit: for evaluations that need a fixed limit, in tokens. 0 is unset.
	EvalOverride int `json:"eval_override,omitempty"`
	// Fraction of the window, over 0 up to 1. Default SelfSummaryContextWindowFraction.
	Fraction float64 `json:"fraction"`
	// Turns is the number of genuine user messages. Default SelfSummaryNumTurns.
	Turns int `json:"turns"`
	// Start is where background pre-compaction begins to compute. If it is unset, nothing is prepared.
	Start Threshold `json:"start"`
	// Apply is where a prepared summary takes effect.
	Apply Threshold `json:"apply"`
}

// DigestPolicy decides when the deterministic digest may replace a model's summary.
type DigestPolicy string

// The digest policies.
const (
	DigestWhenNeeded DigestPolicy = "when_needed" // automatic runs, and any run at or over the limit
	DigestAlways     DigestPolicy = "always"
	DigestNever      DigestPolicy = "never" // the run ends failed, the context stays as it was
)

// Mode is the way in which a summarizer is asked.
type Mode string

// The modes.
const (
	ModeExplicit Mode = "explicit" // our prompt
	ModeBeta     Mode = "beta"     // the vendor's native compaction
)

// SummarizerSpec names one summarizer in the ordered list of settings: "self", or "VENDOR/MODEL".
type SummarizerSpec struct {
	// Model is "self" or "VENDOR/MODEL", such as "anthropic/claude-sonnet-4-5".
	Model string `json:"model"`
	// ContextWindow in tokens; 0 means the model registry's.
	ContextWindow int `json:"context_window,omitempty"`
	// MaxOutput in tokens; 0 means the model registry's.
	MaxOutput int `json:"max_output,omitempty"`
}

// UnmarshalJSON accepts a plain string for the model as well as the object.
func (s *SummarizerSpec) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '"' {
		*s = SummarizerSpec{}
		return json.Unmarshal(data, &s.Model)
	}
	type plain SummarizerSpec // without this method
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode((*plain)(s))
}

// MarshalJSON writes a plain string if only the model is set.
func (s SummarizerSpec) MarshalJSON() ([]byte, error) {
	if s == (SummarizerSpec{Model: s.Model}) {
		return json.Marshal(s.Model)
	}
	type plain SummarizerSpec
	return json.Marshal(plain(s))
}

// Settings are the settings of a compaction. The JSON names are those of the HTTP API and the configuration file.
type Settings struct {
	Trigger     TriggerSettings  `json:"trigger"`
	Summarizers []SummarizerSpec `json:"summarizers"`
	// ForceExternal excludes "self" from the list.
	ForceExternal bool `json:"force_external"`
	Mode          Mode `json:"mode"`
	// Prompt is the name of the prompt to use. If it is empty, vendor and use decide.
	Prompt string `json:"prompt,omitempty"`
	// SummaryMaxTokens caps a summary. Default 8192.
	SummaryMaxTokens int `json:"summary_max_tokens"`
	// PreserveLastUser summarizes the last user message and also keeps it in the tail.
	PreserveLastUser bool `json:"preserve_last_user"`
	// RelaxedSplitGuard accepts a split right after the first message.
	RelaxedSplitGuard bool `json:"relaxed_split_guard"`
	// TailMaxFraction is the share of the window that the verbatim tail may take before the split moves
	// forward inside the turn. Default 0.5.
	TailMaxFraction float64 `json:"tail_max_fraction"`
	// MaxPromptChars bounds the summarizer's rendered input, in chars. Default MaxSummarizationPromptChars.
	MaxPromptChars int `json:"max_prompt_chars"`
	// StrictPromptChars replaces MaxPromptChars when over 0; the strict profile sets it to 2,800,000.
	StrictPromptChars int `json:"strict_prompt_chars,omitempty"`
	// ToolDropThreshold is the share of tool messages from which they are dropped first; over 1 they never are. Default
	// ToolMessageDropThreshold.
	ToolDropThreshold float64 `json:"tool_drop_threshold"`
	// MinUsefulChars is the least that a cut message keeps. Default DefaultMinUsefulChars.
	MinUsefulChars int `json:"min_useful_chars"`
	// ToolResultKeepTurns is the number of last user turns whose tool results are sent in full; 0: always. Default 5.
	ToolResultKeepTurns int `json:"tool_result_keep_turns"`
	// ToolResultPreviewChars is the size over which an older tool result becomes a preview. Default 2000.
	ToolResultPreviewChars int `json:"tool_result_preview_chars"`
	// MaxToolResultTokens caps each tool result; 0 means no cap.
	MaxToolResultTokens int `json:"max_tool_result_tokens,omitempty"`
	// MaxInputTokens is the input budget of a request; 0 means none.
	MaxInputTokens int `json:"max_input_tokens,omitempty"`
	// Digest decides when the digest may replace a model's summary. Default DigestWhenNeeded.
	Digest DigestPolicy `json:"digest"`
}

// DefaultSettings returns the settings of a conversation that configures nothing.
func DefaultSettings() Settings {
	return Settings{
		Trigger: TriggerSettings{
			Auto:     true,
			Fraction: SelfSummaryContextWindowFraction,
			Turns:    SelfSummaryNumTurns,
		},
		Summarizers:            []SummarizerSpec{{Model: "self"}},
		Mode:                   ModeExplicit,
		SummaryMaxTokens:       8192,
		TailMaxFraction:        0.5,
		MaxPromptChars:         MaxSummarizationPromptChars,
		ToolDropThreshold:      ToolMessageDropThreshold,
		MinUsefulChars:         DefaultMinUsefulChars,
		ToolResultKeepTurns:    5,
		ToolResultPreviewChars: 2000,
		Digest:                 DigestWhenNeeded,
	}
}
