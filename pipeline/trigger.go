package pipeline

import (
	"fmt"
	"math"
	"strings"
)

// TriggerKind names the signal that started a compaction.
type TriggerKind string

// The signals. Where several fire together, the first of this list is named.
const (
	TriggerManual     TriggerKind = "manual"     // requested by hand
	TriggerOverflow   TriggerKind = "overflow"   // the agent's own model call failed because the context was too large
	TriggerTokens     TriggerKind = "tokens"     // used reached the limit
	TriggerTurns      TriggerKind = "turns"      // the number of genuine user messages reached its limit
	TriggerBackground TriggerKind = "background" // used reached the point where preparing starts
)

const (
	// outputReserveMaxFraction bounds the share of the window that is reserved for the agent's output. A fixed reserve
	// could take all of a small window. Reserves seen in practice are up to 40 %.
	outputReserveMaxFraction = 0.5
	// implausibleFactor is the factor over the estimate from which a figure above the window is rejected.
	implausibleFactor = 3.0
	// truncatedShare is the share of the estimate below which a figure is taken for that of a truncated prompt, if the
	// estimate alone is above the window. Tokenizers differ by less than that.
	truncatedShare = 2.0 / 3
	// calibrationMinTokens is the smallest estimate that a figure may calibrate. Below it the fixed part of a request,
	// which an estimate of messages does not include, makes the ratio meaningless.
	calibrationMinTokens = 1000
	// calibrationMin and calibrationMax bound the ratio. All known tokenizers are within these bounds.
	calibrationMin, calibrationMax = 0.5, 4.0
)

// TriggerInput is what the decision is based on. Token figures cover the request as it would be sent now, with system
// prompt and tools where they are known.
type TriggerInput struct {
	// Window is the model's context window in tokens, 0 when unknown: DefaultContextWindow is assumed.
	Window int
	// WindowGuessed reports that Window is a default and not the model's own.
	WindowGuessed bool
	// MaxOutput is the output in tokens that the agent requests, where that is configured. 0 means unknown: nothing is
	// reserved for output. It is not the model's maximum.
	MaxOutput int
	// ServerTokens is the figure of the last request alone, never a sum: all input, cached or not, and output. 0 means
	// that the server gave none.
	ServerTokens int
	// ServerStale reports that a marker was applied after the request of that figure began.
	ServerStale bool
	// EstimateServerPart is the local estimate of what ServerTokens covers, with the answer, in tokens.
	EstimateServerPart int
	// EstimateAll is the local estimate of the whole context now, in tokens.
	EstimateAll int
	// Calibration is the Calibration of an earlier decision, or the known ratio of the model's tokenizer. It applies
	// until a figure from the server gives another. 0 means unknown.
	Calibration float64
	// Turns is the number of genuine user messages that a compaction would summarize.
	Turns int
	// Manual: requested by hand. Overflow: the agent's own model call failed because the context was too large.
	Manual, Overflow bool
	// Prepared reports whether there is a prepared summary.
	Prepared bool
	// Hold is the reason why no automatic run may start, such as "no new message since the last compaction", "undone"
	// or "breaker open". It is empty if one may start.
	Hold string
}

// TriggerDecision is the decision with every number that was compared.
type TriggerDecision struct {
	// Fired reports whether a run starts.
	Fired bool `json:"fired"`
	// Kind is the signal that fired. With automatic compaction switched off (trigger.auto) it is the signal that would
	// have fired, for an agent that starts its compactions itself.
	Kind TriggerKind `json:"kind,omitempty"`
	// Reason is one sentence with the numbers.
	Reason string `json:"reason"`
	// Used is compared with Limit: Used >= Limit fires. Both are in tokens, as all figures below.
	Used   int `json:"used"`
	Limit  int `json:"limit"`
	Window int `json:"window"`
	// Estimate is the local estimate, calibrated; ServerTokens is the server's figure as it arrived.
	Estimate     int `json:"estimate"`
	ServerTokens int `json:"server_tokens"`
	// Estimated reports that Used is based on the estimate and not on a figure from the server.
	Estimated     bool `json:"estimated"`
	WindowGuessed bool `json:"window_guessed"`
	// Implausible reports that the server's figure was rejected.
	Implausible bool `json:"implausible"`
	Turns       int  `json:"turns"`
	TurnLimit   int  `json:"turn_limit"`
	// StartLimit and ApplyLimit are the background thresholds, 0 when not set.
	StartLimit int `json:"start_limit,omitempty"`
	ApplyLimit int `json:"apply_limit,omitempty"`
	// Prepare reports that the run that starts only prepares a summary.
	Prepare bool `json:"prepare,omitempty"`
	// ApplyPrepared reports that the prepared summary takes effect now. No run is started then.
	ApplyPrepared bool `json:"apply_prepared,omitempty"`
	// OverLimit reports that Used is at or above Limit, whether or not a run may start.
	OverLimit bool `json:"over_limit"`
	// Calibration is the ratio of real to estimated tokens, to be passed to the next decision; 0 means unknown.
	Calibration float64 `json:"calibration,omitempty"`
}

// EvaluateTrigger decides whether a compaction starts.
//
// The limit is the evaluation override if set, else the configured limit, else floor(window × fraction). Except for the
// evaluation override, the limit is lowered so that the agent's configured output fits beside it, and a limit above the
// window, as after a change of model, is replaced by the fraction. A compaction starts when the limit is reached.
func EvaluateTrigger(in TriggerInput, s Settings) TriggerDecision {
	d := TriggerDecision{
		Window:        in.Window,
		WindowGuessed: in.WindowGuessed,
		ServerTokens:  in.ServerTokens,
		Turns:         in.Turns,
		TurnLimit:     s.Trigger.Turns,
	}
	if d.Window <= 0 {
		d.Window, d.WindowGuessed = DefaultContextWindow, true
	}
	d.Limit = tokenLimit(s.Trigger, d.Window, in.MaxOutput)
	d.StartLimit = thresholdLimit(s.Trigger.Start, d.Window)
	d.ApplyLimit = thresholdLimit(s.Trigger.Apply, d.Window)
	d.measure(in)
	d.OverLimit = d.Used >= d.Limit
	d.decide(in, s.Trigger)
	return d
}

// tokenLimit returns the size in tokens at which a compaction starts.
func tokenLimit(t TriggerSettings, window, maxOutput int) int {
	if t.EvalOverride > 0 && t.EvalOverride <= window {
		return t.EvalOverride
	}
	fraction := t.Fraction
	if !(fraction > 0 && fraction <= 1) {
		fraction = SelfSummaryContextWindowFraction
	}
	limit := floorShare(window, fraction)
	if t.TokenLimit > 0 && t.TokenLimit <= window {
		limit = t.TokenLimit
	}
	reserve := min(max(maxOutput, 0), floorShare(window, outputReserveMaxFraction))
	return max(1, min(limit, window-reserve))
}

// thresholdLimit returns where a background threshold is reached: the earlier of its two forms, 0 if it is unset. A
// form that leaves nothing of the window is ignored.
func thresholdLimit(t Threshold, window int) int {
	limit := 0
	if t.UnusedTokens > 0 && t.UnusedTokens < window {
		limit = window - t.UnusedTokens
	}
	if t.UnusedPercent > 0 && t.UnusedPercent < 1 {
		if byShare := floorShare(window, 1-t.UnusedPercent); byShare > 0 && (limit == 0 || byShare < limit) {
			limit = byShare
		}
	}
	return limit
}

// floorShare returns floor(n × share), corrected for shares without an exact binary form: 0.29 of 100 is 29.
func floorShare(n int, share float64) int {
	return int(math.Floor(float64(n)*share + 1e-6))
}

// decide sets what is done, from the numbers.
func (d *TriggerDecision) decide(in TriggerInput, t TriggerSettings) {
	turns := t.Turns > 0 && in.Turns >= t.Turns
	if in.Manual {
		d.Fired, d.Kind = true, TriggerManual
		d.Reason = "asked for by hand; " + d.numbers()
		return
	}

	var kind TriggerKind
	var why string
	switch {
	case in.Overflow:
		kind, why = TriggerOverflow, "the model reported that the context overflows its window; "+d.numbers()
	case d.OverLimit:
		kind, why = TriggerTokens, d.numbers()+", at the limit or above"
	case turns:
		kind, why = TriggerTurns, fmt.Sprintf("%d user messages, the limit is %d", in.Turns, t.Turns)
	case in.Prepared && d.ApplyLimit > 0 && d.Used >= d.ApplyLimit:
		kind, why = TriggerBackground, fmt.Sprintf("%s, prepared summaries apply from %d", d.numbers(), d.ApplyLimit)
	case !in.Prepared && d.StartLimit > 0 && d.Used >= d.StartLimit:
		kind, why = TriggerBackground, fmt.Sprintf("%s, preparing starts at %d", d.numbers(), d.StartLimit)
	default:
		d.Reason = d.numbers() + ", below the limit"
		return
	}

	switch {
	case !t.Auto:
		d.Kind = kind
		d.Reason = why + "; automatic compaction is switched off (trigger.auto)"
	case in.Hold != "":
		d.Reason = why + "; no automatic run: " + in.Hold
	case in.Prepared:
		d.Kind, d.ApplyPrepared = kind, true
		d.Reason = why + "; the prepared summary takes effect"
	default:
		d.Fired, d.Kind = true, kind
		d.Prepare = kind == TriggerBackground
		d.Reason = why
	}
}

// numbers returns the comparison of Used with Limit as text.
func (d *TriggerDecision) numbers() string {
	var b strings.Builder
	if d.Estimated {
		b.WriteString("≈")
	}
	fmt.Fprintf(&b, "%d of %d tokens used, the limit is %d", d.Used, d.Window, d.Limit)
	if d.WindowGuessed {
		b.WriteString(" (the window is a guess)")
	}
	if d.Implausible {
		fmt.Fprintf(&b, " (the server's figure of %d is not plausible)", d.ServerTokens)
	}
	return b.String()
}
