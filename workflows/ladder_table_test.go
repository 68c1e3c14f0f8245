package workflows

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/internal/contract"
	"precis/pipeline"
)

// summarizerKinds are the summarizers that can fail and be followed by another one.
var summarizerKinds = []pipeline.SummarizerKind{
	pipeline.SummarizerNative, pipeline.SummarizerSelf, pipeline.SummarizerExternal,
}

func TestLadderNext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		stage      contract.Stage
		summarizer pipeline.SummarizerKind
		kind       pipeline.ErrorKind
		want       []contract.Fallback // for the same failure again and again
	}{
		{
			"the first matching rule counts", contract.StageSummarize, pipeline.SummarizerSelf, pipeline.OutputTooLong,
			[]contract.Fallback{contract.ShorterOutput, contract.NextSummarizer, contract.NextSummarizer},
		},
		{
			"each fallback as often as allowed", contract.StageSummarize, pipeline.SummarizerExternal,
			pipeline.InputTokensExceeded,
			[]contract.Fallback{
				contract.SlimHarder, contract.SlimHarder, contract.SlimHarder, contract.LargerWindow,
				contract.LargerWindow,
			},
		},
		{
			"a rule for any stage", contract.StageSlim, pipeline.SummarizerExternal, pipeline.BudgetExceeded,
			[]contract.Fallback{contract.UseDigest, contract.Fail},
		},
		{
			"a failure that no rule names", contract.StageReassemble, "", pipeline.Internal,
			[]contract.Fallback{contract.Fail, contract.Fail},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			used := taken{}
			var got []contract.Fallback
			for range tt.want {
				got = append(got, used.next(tt.stage, tt.summarizer, tt.kind))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("fallbacks (-want +got):\n%s", diff)
			}
		})
	}
}

// Every failure of asking for a summary, and of applying it, has a fallback that does not end the run as failed.
func TestLadderHasARuleForEveryFailure(t *testing.T) {
	t.Parallel()
	ofReassemble := []pipeline.ErrorKind{pipeline.NoShrink, pipeline.Conflict}
	var missing []string
	check := func(stage contract.Stage, s pipeline.SummarizerKind, kind pipeline.ErrorKind) {
		if (taken{}).next(stage, s, kind) == contract.Fail {
			missing = append(missing, strings.Join([]string{string(stage), string(s), string(kind)}, " "))
		}
	}
	for _, kind := range pipeline.ErrorKinds {
		if kind == pipeline.Cancelled || slices.Contains(ofReassemble, kind) {
			continue
		}
		for _, s := range summarizerKinds {
			check(contract.StageSummarize, s, kind)
		}
	}
	for _, kind := range ofReassemble {
		check(contract.StageReassemble, pipeline.SummarizerExternal, kind)
	}
	if diff := cmp.Diff([]string(nil), missing); diff != "" {
		t.Errorf("failures without a rule (-want +got):\n%s", diff)
	}
}

// Whatever fails how often, a summarizer is left after a few fallbacks.
func TestLadderIsFinite(t *testing.T) {
	t.Parallel()
	const most = 8 // with every allowance of the table used up
	leaves := []contract.Fallback{
		contract.NextSummarizer, contract.LargerWindow, contract.UseDigest, contract.Fail,
	}
	for _, s := range summarizerKinds {
		t.Run(string(s), func(t *testing.T) {
			t.Parallel()
			used, tries := taken{}, 0
			for _, kind := range slices.Repeat(pipeline.ErrorKinds, 2) {
				for !slices.Contains(leaves, used.next(contract.StageSummarize, s, kind)) {
					if tries++; tries > most {
						t.Fatalf("more than %d fallbacks with one summarizer", most)
					}
				}
			}
		})
	}
}

var updateTable = flag.Bool("update-ladder", false, "write docs/ladder.md from the ladder of the code")

const ladderDoc = "../docs/ladder.md"

// The table in the docs is the table in the code.
func TestLadderDocument(t *testing.T) {
	t.Parallel()
	want := `# The ladder

What a run does after a failure, as the table that the workflow reads (workflows/ladder.go). The first row for the
stage, the summarizer and the error kind counts. Its fallbacks are taken in order, each as often as the row says for one
summarizer; those of the stage reassemble, for one run. Transient failures (rate limits, overload, network, timeouts,
server errors) are first retried by the activity with backoff, by the vendor's Retry-After, within the run's time; the
table is for what is left when the retries are used up. A run makes at most ` + "`MaxModelCalls`" + ` = 10 model calls, then the
digest is used. What each error kind means is in [errors.md](errors.md).

` + ladderText()
	if *updateTable {
		if err := os.WriteFile(ladderDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(ladderDoc)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/ladder.md differs from the ladder of the code: go test ./workflows -run TestLadderDocument "+
			"-update-ladder (-want +got):\n%s", diff)
	}
	if MaxModelCalls != 10 {
		t.Errorf("the document says 10 model calls, the code %d", MaxModelCalls)
	}
}

// ladderText returns the ladder as a Markdown table.
func ladderText() string {
	var b strings.Builder
	b.WriteString("| stage | summarizer | error kinds | fallbacks, in order |\n| --- | --- | --- | --- |\n")
	for _, r := range Ladder {
		var errorKinds, fallbacks []string
		for _, k := range r.Kinds {
			errorKinds = append(errorKinds, string(k))
		}
		for _, a := range r.Fallbacks {
			text := string(a.Fallback)
			if a.Times > 0 {
				text += fmt.Sprintf(" ×%d", a.Times)
			}
			fallbacks = append(fallbacks, text)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", orAny(string(r.Stage)), orAny(string(r.Summarizer)),
			strings.Join(errorKinds, ", "), strings.Join(fallbacks, " → "))
	}
	return b.String()
}

func orAny(s string) string {
	if s == "" {
		return "any"
	}
	return s
}
