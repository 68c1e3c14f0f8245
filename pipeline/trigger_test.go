package pipeline

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func triggerSettings(change func(*TriggerSettings)) Settings {
	s := DefaultSettings()
	if change != nil {
		change(&s.Trigger)
	}
	return s
}

func TestTriggerLimit(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		window, maxOutput int
		change            func(*TriggerSettings)
		want              int
	}{
		"floor of the fraction": {window: 10001, want: 9000},
		"a fraction that floats miss": {
			window: 100, change: func(s *TriggerSettings) { s.Fraction = 0.29 },
			want: 29,
		},
		"configured beats fraction": {
			window: 10000, change: func(s *TriggerSettings) { s.TokenLimit = 5000 },
			want: 5000,
		},
		"configured may be above it": {
			window: 10000, change: func(s *TriggerSettings) { s.TokenLimit = 9500 },
			want: 9500,
		},
		"the override beats both": {
			window: 10000,
			change: func(s *TriggerSettings) { s.TokenLimit, s.EvalOverride = 5000, 700 }, want: 700,
		},
		"room for the output": {window: 10000, maxOutput: 4000, want: 6000},
		"beside a configured limit": {
			window: 10000, maxOutput: 4000,
			change: func(s *TriggerSettings) { s.TokenLimit = 8000 }, want: 6000,
		},
		"not beside an override": {
			window: 10000, maxOutput: 4000,
			change: func(s *TriggerSettings) { s.EvalOverride = 8000 }, want: 8000,
		},
		"output limit unknown":      {window: 16384, want: 14745},
		"a reserve over the window": {window: 16384, maxOutput: 32000, want: 8192},
		"a negative one":            {window: 16384, maxOutput: -1, want: 14745},
		"a limit of the larger window": {
			window: 32000, change: func(s *TriggerSettings) { s.TokenLimit = 180000 },
			want: 28800,
		},
		"an override of it": {
			window: 32000,
			change: func(s *TriggerSettings) { s.EvalOverride = 180000 }, want: 28800,
		},
		"unknown window":  {window: 0, want: 115200},
		"a window of one": {window: 1, want: 1},
		"fraction unset": {
			window: 1000, change: func(s *TriggerSettings) { s.Fraction = 0 },
			want: 900,
		},
		"fraction NaN": {
			window: 1000, change: func(s *TriggerSettings) { s.Fraction = math.NaN() },
			want: 900,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := EvaluateTrigger(TriggerInput{Window: tt.window, MaxOutput: tt.maxOutput}, triggerSettings(tt.change))
			if d.Limit != tt.want {
				t.Errorf("limit %d, want %d", d.Limit, tt.want)
			}
		})
	}
}

// usedCases are figures and estimates, and what each comes to.
var usedCases = map[string]struct {
	in          TriggerInput
	used        int
	estimated   bool
	implausible bool
	fired       bool
}{
	"the server's figure": {
		in:   TriggerInput{Window: 10000, ServerTokens: 8999, EstimateServerPart: 8000, EstimateAll: 8000},
		used: 8999,
	},
	"reaching the limit fires": {
		in:   TriggerInput{Window: 10000, ServerTokens: 9000, EstimateServerPart: 8000, EstimateAll: 8000},
		used: 9000, fired: true,
	},
	"what came since is estimated, and scaled": {
		in:   TriggerInput{Window: 10000, ServerTokens: 6000, EstimateServerPart: 3000, EstimateAll: 4000},
		used: 8000,
	},
	"the last request alone counts": {
		in: TriggerInput{Window: 32000, ServerTokens: 2100, EstimateServerPart: 300, EstimateAll: 300}, used: 2100,
	},
	"a small request calibrates nothing": {
		in:   TriggerInput{Window: 32000, ServerTokens: 20100, EstimateServerPart: 100, EstimateAll: 1100},
		used: 21100,
	},
	"no figure": {
		in:   TriggerInput{Window: 16000, ServerTokens: 0, EstimateServerPart: 15000, EstimateAll: 15000},
		used: 15000, estimated: true, fired: true,
	},
	"a corrupt figure above the window": {
		in:   TriggerInput{Window: 16000, ServerTokens: 500000, EstimateServerPart: 15000, EstimateAll: 15000},
		used: 15000, estimated: true, implausible: true, fired: true,
	},
	"does not start anything alone": {
		in:   TriggerInput{Window: 16000, ServerTokens: 500000, EstimateServerPart: 1000, EstimateAll: 1200},
		used: 1200, estimated: true, implausible: true,
	},
	"three times the estimate within the window is believed": {
		in:   TriggerInput{Window: 13000, ServerTokens: 12100, EstimateServerPart: 3500, EstimateAll: 3500},
		used: 12100, fired: true,
	},
	"a little above the window is believed": {
		in:   TriggerInput{Window: 13000, ServerTokens: 14000, EstimateServerPart: 12000, EstimateAll: 12000},
		used: 14000, fired: true,
	},
	"the server cut the prompt": {
		in:   TriggerInput{Window: 32768, ServerTokens: 16396, EstimateServerPart: 50000, EstimateAll: 50010},
		used: 50010, estimated: true, implausible: true, fired: true,
	},
	"a figure somewhat below is another tokenizer": {
		in:   TriggerInput{Window: 32768, ServerTokens: 27000, EstimateServerPart: 33000, EstimateAll: 33000},
		used: 27000,
	},
	"a figure from before the marker is stale": {
		in: TriggerInput{
			Window: 10000, ServerTokens: 9500, ServerStale: true, EstimateServerPart: 9500,
			EstimateAll: 800,
		}, used: 800, estimated: true,
	},
	"yet it calibrates": {
		in: TriggerInput{
			Window: 13000, ServerTokens: 12000, ServerStale: true, EstimateServerPart: 4000,
			EstimateAll: 2000,
		}, used: 6000, estimated: true,
	},
	"as does an earlier decision": {
		in: TriggerInput{Window: 13000, EstimateAll: 4000, Calibration: 3}, used: 12000, estimated: true,
		fired: true,
	},
	"a calibration that is no number counts as none": {
		in: TriggerInput{Window: 13000, EstimateAll: 4000, Calibration: math.NaN()}, used: 4000, estimated: true,
	},
	"negative figures count as none": {
		in: TriggerInput{Window: 13000, ServerTokens: -5, EstimateServerPart: -5, EstimateAll: -5}, used: 0,
		estimated: true,
	},
	"an image by its size": {
		in: TriggerInput{
			Window: 128000,
			EstimateAll: EstimateMessage(Message{
				Role:  RoleUser,
				Parts: []Part{{Kind: PartImage, Bytes: 1_200_000, Width: 1200, Height: 900}},
			}),
		}, used: 1444,
		estimated: true,
	},
}

func TestTriggerUsed(t *testing.T) {
	t.Parallel()
	for name, tt := range usedCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := EvaluateTrigger(tt.in, DefaultSettings())
			if d.Used != tt.used || d.Estimated != tt.estimated || d.Implausible != tt.implausible ||
				d.Fired != tt.fired {
				t.Errorf("used %d estimated %v implausible %v fired %v, want %d %v %v %v; %s",
					d.Used, d.Estimated, d.Implausible, d.Fired, tt.used, tt.estimated, tt.implausible, tt.fired,
					d.Reason)
			}
		})
	}
}

// background switches background compaction on.
func background(s *TriggerSettings) {
	s.Start = Threshold{UnusedTokens: 5000, UnusedPercent: 0.6}
	s.Apply = Threshold{UnusedPercent: 0.2}
}

// signalCases are the signals that can start a compaction.
var signalCases = map[string]struct {
	in      TriggerInput
	change  func(*TriggerSettings)
	fired   bool
	kind    TriggerKind
	prepare bool
	apply   bool
	reason  string
}{
	"nothing": {in: TriggerInput{Window: 10000, EstimateAll: 10}, reason: "below the limit"},
	"tokens": {
		in: TriggerInput{Window: 10000, EstimateAll: 9000}, fired: true, kind: TriggerTokens,
		reason: "≈9000 of 10000 tokens used, the limit is 9000",
	},
	"turns": {
		in: TriggerInput{Window: 10000, Turns: 1000}, fired: true, kind: TriggerTurns,
		reason: "1000 user messages, the limit is 1000",
	},
	"not yet": {in: TriggerInput{Window: 10000, Turns: 999}, reason: "below"},
	"manual": {
		in:    TriggerInput{Window: 10000, Manual: true, EstimateAll: 9999, Hold: "undone"},
		fired: true, kind: TriggerManual, reason: "by hand",
	},
	"overflow": {
		in: TriggerInput{Window: 10000, Overflow: true, EstimateAll: 9999}, fired: true,
		kind: TriggerOverflow, reason: "overflows",
	},
	"auto off": {
		in: TriggerInput{
			Window: 10000, ServerTokens: 9900, EstimateServerPart: 9900,
			EstimateAll: 9900, Overflow: true,
		}, change: func(s *TriggerSettings) { s.Auto = false },
		kind: TriggerOverflow, reason: "switched off",
	},
	"yet manual": {
		in:     TriggerInput{Window: 10000, Manual: true},
		change: func(s *TriggerSettings) { s.Auto = false }, fired: true, kind: TriggerManual, reason: "by hand",
	},
	"held": {in: TriggerInput{
		Window: 10000, EstimateAll: 9999,
		Hold: "no new message since the last compaction",
	}, reason: "no automatic run: no new message"},
	"guessed window": {in: TriggerInput{EstimateAll: 10}, reason: "the window is a guess"},

	"before the earlier start": {
		in: TriggerInput{Window: 10000, EstimateAll: 3999}, change: background,
		reason: "below",
	},
	"start at the earlier form": {
		in: TriggerInput{Window: 10000, EstimateAll: 4000}, change: background,
		fired: true, kind: TriggerBackground, prepare: true, reason: "preparing starts at 4000",
	},
	"prepared, below apply": {
		in:     TriggerInput{Window: 10000, EstimateAll: 7999, Prepared: true},
		change: background, reason: "below",
	},
	"prepared, at apply": {
		in:     TriggerInput{Window: 10000, EstimateAll: 8000, Prepared: true},
		change: background, kind: TriggerBackground, apply: true, reason: "takes effect",
	},
	"prepared, no apply threshold": {
		in:     TriggerInput{Window: 10000, EstimateAll: 9000, Prepared: true},
		change: func(s *TriggerSettings) { s.Start.UnusedPercent = 0.6 }, kind: TriggerTokens, apply: true,
		reason: "takes effect",
	},
	"prepared, held": {in: TriggerInput{
		Window: 10000, EstimateAll: 9000, Prepared: true,
		Hold: "undone",
	}, change: background, reason: "undone"},
	"the limit comes before preparing": {
		in: TriggerInput{Window: 10000, EstimateAll: 9000}, change: background,
		fired: true, kind: TriggerTokens, reason: "at the limit",
	},
	"a start beyond the window": {
		in:     TriggerInput{Window: 4000, EstimateAll: 100},
		change: func(s *TriggerSettings) { s.Start.UnusedTokens = 5000 }, reason: "below",
	},
}

func TestTriggerSignals(t *testing.T) {
	t.Parallel()
	for name, tt := range signalCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := EvaluateTrigger(tt.in, triggerSettings(tt.change))
			if d.Fired != tt.fired || d.Kind != tt.kind || d.Prepare != tt.prepare || d.ApplyPrepared != tt.apply {
				t.Errorf("fired %v %q prepare %v apply %v", d.Fired, d.Kind, d.Prepare, d.ApplyPrepared)
			}
			if !strings.Contains(d.Reason, tt.reason) {
				t.Errorf("reason %q does not say %q", d.Reason, tt.reason)
			}
		})
	}
}

// Whatever goes in, the limit is within the window and over zero, and the numbers explain the
// outcome.
func TestTriggerProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.OneOf(rapid.IntRange(-10, 300_000), rapid.SampledFrom([]int{0, 0, 1, 999, 10000, 16384}))
		in := TriggerInput{
			Window: number.Draw(t, "window"), MaxOutput: number.Draw(t, "max output"),
			ServerTokens: number.Draw(t, "server"), ServerStale: rapid.Bool().Draw(t, "stale"),
			EstimateServerPart: number.Draw(t, "part"), EstimateAll: number.Draw(t, "all"),
			Calibration: rapid.Float64().Draw(t, "calibration"), Turns: rapid.IntRange(0, 2000).Draw(t, "turns"),
			Manual: rapid.Bool().Draw(t, "manual"), Overflow: rapid.Bool().Draw(t, "overflow"),
			Prepared: rapid.Bool().Draw(t, "prepared"),
		}
		s := triggerSettings(func(s *TriggerSettings) {
			s.Auto = rapid.Bool().Draw(t, "auto")
			s.Fraction = rapid.Float64().Draw(t, "fraction")
			s.TokenLimit = number.Draw(t, "limit")
			s.EvalOverride = number.Draw(t, "override")
			s.Start = Threshold{
				UnusedTokens:  number.Draw(t, "unused"),
				UnusedPercent: rapid.Float64Range(0, 1).Draw(t, "percent"),
			}
		})
		d := EvaluateTrigger(in, s)
		if d.Window <= 0 || d.Limit < 1 || d.Limit > d.Window || d.StartLimit < 0 || d.StartLimit > d.Window ||
			d.Used < 0 || d.Estimate < 0 {
			t.Fatalf("numbers out of range: %+v", d)
		}
		if d.OverLimit != (d.Used >= d.Limit) {
			t.Fatalf("over the limit: %+v", d)
		}
		if d.Fired && d.ApplyPrepared || d.Reason == "" {
			t.Fatalf("unclear: %+v", d)
		}
		if d.Fired && !in.Manual && !s.Trigger.Auto {
			t.Fatalf("an automatic run with auto off: %+v", d)
		}
		if d.Kind == TriggerTokens && !d.OverLimit || d.Kind == TriggerTurns && d.Turns < d.TurnLimit {
			t.Fatalf("the kind is not what fired: %+v", d)
		}
		if c := d.Calibration; c != 0 && (c < calibrationMin || c > calibrationMax) {
			t.Fatalf("calibration %v", c)
		}
		// The decision is the same when it is made again with what it said itself.
		in.Calibration = d.Calibration
		if again := EvaluateTrigger(in, s); again.Used != d.Used && !d.Implausible {
			t.Fatalf("made again: %+v, then %+v", d, again)
		}
	})
}
