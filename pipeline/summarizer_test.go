package pipeline

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// ladderOf writes a ladder as "self > openai/gpt > digest", a fallback with "?".
func ladderOf(c Choice) string {
	var rungs []string
	for _, s := range c.Ladder {
		rung := s.String()
		if s.Fallback {
			rung += "?"
		}
		rungs = append(rungs, rung)
	}
	return strings.Join(rungs, " > ")
}

func specs(models ...string) []SummarizerSpec {
	var list []SummarizerSpec
	for _, m := range models {
		list = append(list, SummarizerSpec{Model: m})
	}
	return list
}

// ladderCases are choices of summarizers: "a > b", with a question mark behind a fallback.
var ladderCases = map[string]struct {
	change     func(*SummarizerInput)
	want       string
	selfReason string
	skipped    string
	err        bool
}{
	"defaults": {want: "self > anthropic/agent? > digest"},
	"in the order of the list": {
		change: func(in *SummarizerInput) { in.Settings.Summarizers = specs("openai/a", "self", "xai/b/c") },
		want:   "openai/a > self > xai/b/c > digest",
	},
	"forced external wins": {
		change: func(in *SummarizerInput) {
			in.Settings.ForceExternal = true
			in.Settings.Summarizers = specs("self", "openai/a")
		},
		want: "openai/a > digest", selfReason: "force_external",
	},
	"forced, and none listed": {
		change: func(in *SummarizerInput) { in.Settings.ForceExternal = true },
		want:   "anthropic/agent? > digest", selfReason: "force_external",
	},
	"self not listed": {
		change: func(in *SummarizerInput) { in.Settings.Summarizers = specs("openai/a") },
		want:   "openai/a > digest", selfReason: "not among",
	},
	"self not allowed": {
		change: func(in *SummarizerInput) { in.SelfAllowed, in.SelfDenied = false, "health check" },
		want:   "anthropic/agent? > digest", selfReason: "health check",
	},
	"tools unknown": {
		change: func(in *SummarizerInput) { in.ToolsKnown = false },
		want:   "anthropic/agent? > digest", selfReason: "tools",
	},
	"system unknown": {
		change: func(in *SummarizerInput) { in.SystemKnown = false },
		want:   "anthropic/agent? > digest", selfReason: "system prompt",
	},
	"breaker": {
		change: func(in *SummarizerInput) {
			in.BreakerOpen = func(v, _ string) bool { return v == "anthropic" }
			in.Settings.Summarizers = specs("self", "anthropic/x", "openai/a")
		},
		want: "openai/a > digest", selfReason: "breaker of anthropic",
		skipped: "anthropic/x: the breaker of anthropic is open",
	},
	"by hand past the breaker": {
		change: func(in *SummarizerInput) {
			in.BreakerOpen = func(string, string) bool { return true }
			in.Manual = true
		},
		want: "self > anthropic/agent?",
	},
	"a vendor that is not configured": {
		change: func(in *SummarizerInput) {
			in.Settings.Summarizers = specs("nobody/x", "openai/a")
		},
		want: "openai/a > digest", selfReason: "not among", skipped: "nobody/x: no such vendor",
	},
	"a model twice": {
		change: func(in *SummarizerInput) {
			in.Settings.Summarizers = specs("self", "self", "openai/a",
				"openai/a")
		},
		want: "self > openai/a > digest", skipped: "openai/a: it is listed already",
	},
	"no model at all ends in the digest, by hand too": {
		change: func(in *SummarizerInput) {
			in.Manual, in.AgentVendor, in.SelfAllowed = true, "nobody", false
		},
		want: "digest", selfReason: "not allowed", skipped: "nobody/agent: no such vendor",
	},
	"digest by hand at the limit": {
		change: func(in *SummarizerInput) { in.Manual, in.AtOrOverLimit = true, true },
		want:   "self > anthropic/agent? > digest",
	},
	"digest always": {
		change: func(in *SummarizerInput) { in.Manual, in.Settings.Digest = true, DigestAlways },
		want:   "self > anthropic/agent? > digest",
	},
	"digest never": {
		change: func(in *SummarizerInput) { in.AtOrOverLimit, in.Settings.Digest = true, DigestNever },
		want:   "self > anthropic/agent?",
	},
	"nothing is left": {
		change: func(in *SummarizerInput) {
			in.Settings.Digest, in.AgentVendor, in.SelfAllowed = DigestNever, "nobody", false
		},
		err: true, selfReason: "not allowed", skipped: "nobody/agent: no such vendor",
	},
}

func TestChooseSummarizers(t *testing.T) {
	t.Parallel()
	for name, tt := range ladderCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := SummarizerInput{
				Settings: DefaultSettings(), AgentVendor: "anthropic", AgentModel: "agent", AgentWindow: 200_000,
				AgentMaxOutput: 64_000, ToolsKnown: true, SystemKnown: true, SelfAllowed: true,
				Resolve: func(spec SummarizerSpec) (Summarizer, error) {
					vendor, model, err := spec.Split()
					if vendor == "nobody" {
						return Summarizer{}, errors.New("no such vendor")
					}
					return Summarizer{Vendor: vendor, Model: model, Window: 100_000, MaxOutput: 8000}, err
				},
			}
			if tt.change != nil {
				tt.change(&in)
			}
			c, err := ChooseSummarizers(in)
			if got := ladderOf(c); got != tt.want {
				t.Errorf("ladder %q, want %q", got, tt.want)
			}
			if (err != nil) != tt.err || err != nil && KindOf(err) != ModelNotFound {
				t.Errorf("error %v", err)
			}
			if tt.selfReason == "" && c.SelfReason != "" || !strings.Contains(c.SelfReason, tt.selfReason) {
				t.Errorf("self reason %q, want %q", c.SelfReason, tt.selfReason)
			}
			var skipped []string
			for _, s := range c.Skipped {
				skipped = append(skipped, s.Model+": "+s.Reason)
			}
			if got := strings.Join(skipped, "; "); got != tt.skipped {
				t.Errorf("skipped %q, want %q", got, tt.skipped)
			}
			for _, s := range c.Ladder {
				if s.Kind != SummarizerDigest && (s.Window == 0 || s.Mode != ModeExplicit) {
					t.Errorf("%s is not filled in: %+v", s, s)
				}
			}
		})
	}
}

func TestChooseSummarizersWithoutResolve(t *testing.T) {
	t.Parallel()
	s := DefaultSettings()
	s.Summarizers = []SummarizerSpec{{Model: "openai/a/b", ContextWindow: 5, MaxOutput: 3}}
	c, err := ChooseSummarizers(SummarizerInput{Settings: s})
	if err != nil || fmt.Sprint(c.Ladder[0]) != "openai/a/b" || c.Ladder[0].Model != "a/b" || c.Ladder[0].Window != 5 ||
		c.Ladder[0].MaxOutput != 3 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestInputBudgetChars(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sum     Summarizer
		change  func(*Settings)
		prompt  int
		density float64
		want    int
	}{
		"the configured bound": {
			sum: Summarizer{Window: 2_000_000}, density: 4,
			want: MaxSummarizationPromptChars,
		},
		"the strict bound": {
			sum: Summarizer{Window: 2_000_000}, density: 4,
			change: func(s *Settings) { s.StrictPromptChars = 2_800_000 },
			want:   2_800_000,
		},
		"the window": {
			sum: Summarizer{Window: 100_000}, prompt: 1000, density: 4,
			want: (100_000 - 10_000 - 1000 - 8192) * 4,
		},
		"a small output limit": {
			sum: Summarizer{Window: 100_000, MaxOutput: 1000}, density: 1,
			want: 100_000 - 10_000 - 1000,
		},
		"a small window": {
			sum: Summarizer{Window: 8000}, prompt: 1000, density: 1,
			want: 8000 - 800 - 1000 - 2000,
		},
		"no density":          {sum: Summarizer{Window: 8000}, prompt: 1000, want: 8000 - 800 - 1000 - 2000},
		"the prompt fills it": {sum: Summarizer{Window: 1000}, prompt: 1000, density: 4, want: 0},
		"window unknown":      {density: 1, want: DefaultContextWindow - DefaultContextWindow/10 - 8192},
		"bound unset": {
			sum: Summarizer{Window: 2_000_000}, density: 4,
			change: func(s *Settings) { s.MaxPromptChars = 0 }, want: MaxSummarizationPromptChars,
		},
		"a density that is no such": {sum: Summarizer{Window: 8000}, density: math.Inf(1), want: 8000 - 800 - 2000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := DefaultSettings()
			if tt.change != nil {
				tt.change(&s)
			}
			if got := InputBudgetChars(s, tt.sum, tt.prompt, tt.density); got != tt.want {
				t.Errorf("got %d, want %d", got, tt.want)
			}
		})
	}
}

// The output limit is always one that the model takes, and what fits the budget fits the window.
func TestBudgetProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := DefaultSettings()
		s.SummaryMaxTokens = rapid.IntRange(-1, 100_000).Draw(t, "cap")
		sum := Summarizer{
			Window:    rapid.IntRange(0, 300_000).Draw(t, "window"),
			MaxOutput: rapid.IntRange(0, 70_000).Draw(t, "max output"),
		}
		input := rapid.IntRange(0, 400_000).Draw(t, "input")
		out := MaxOutputFor(s, sum, input)
		if out < 1 || sum.MaxOutput > 0 && out > sum.MaxOutput || s.SummaryMaxTokens > 0 && out > s.SummaryMaxTokens {
			t.Fatalf("an output limit of %d", out)
		}
		if window := windowOf(sum); FitsWindow(s, sum, input) && input+out > window {
			t.Fatalf("%d of input and %d of output are over the window of %d", input, out, window)
		}
		prompt := rapid.IntRange(0, 5000).Draw(t, "prompt")
		if chars := InputBudgetChars(s, sum, prompt, 1); chars > 0 {
			total := chars + prompt
			if !FitsWindow(s, sum, total) || total+MaxOutputFor(s, sum, total) > windowOf(sum) {
				t.Fatalf("a budget of %d chars does not fit", chars)
			}
		}
	})
}
