package workflows

import (
	"flag"
	"os"
	"strings"
	"testing"

	"precis/activities"
	"precis/pipeline"
)

// summarizerKinds is every way to come by a summary that can go wrong.
var summarizerKinds = []pipeline.SummarizerKind{pipeline.SummarizerSelf, pipeline.SummarizerExternal}

// Every failure that asking for a summary can end in has a step that is not giving up.
func TestLadderAnswersEveryFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range pipeline.ErrorKinds {
		switch kind {
		case pipeline.Cancelled, pipeline.NoShrink, pipeline.Conflict: // not of asking for a summary
			continue
		}
		for _, s := range summarizerKinds {
			if step := (taken{}).next(activities.StageSummarize, s, kind); step == StepFail {
				t.Errorf("summarise, %s: %s ends the run", s, kind)
			}
		}
	}
	for _, kind := range []pipeline.ErrorKind{pipeline.NoShrink, pipeline.Conflict} {
		if step := (taken{}).next(activities.StageReassemble, pipeline.SummarizerExternal, kind); step == StepFail {
			t.Errorf("reassemble: %s ends the run", kind)
		}
	}
}

// Whatever fails how often, one summarizer is left after a few steps.
func TestLadderIsFinite(t *testing.T) {
	t.Parallel()
	const most = 8 // with every allowance of the table used up
	for _, s := range summarizerKinds {
		used, steps := taken{}, 0
		for _, kind := range append(append([]pipeline.ErrorKind(nil), pipeline.ErrorKinds...), pipeline.ErrorKinds...) {
			for {
				step := used.next(activities.StageSummarize, s, kind)
				if step == StepNextSummarizer || step == StepLargerWindow || step == StepFail || step == StepDigest {
					break
				}
				if steps++; steps > most {
					t.Fatalf("%s: more than %d steps", s, most)
				}
			}
		}
	}
}

var updateTable = flag.Bool("update-ladder", false, "write docs/ladder.md anew")

const ladderDoc = "../docs/ladder.md"

// The table in the docs is the table in the code.
func TestLadderDocument(t *testing.T) {
	t.Parallel()
	want := `# The ladder

What a run does when something goes wrong, as the table that the workflow walks (workflows/ladder.go). The steps of a
row are taken in order, each as often as it says for one summarizer; the steps of the stage reassemble, for one run.
Errors that pass by themselves (rate limits, overload, network, time-outs, server errors) are first retried by the
activity with backoff, honouring Retry-After, within the run's time; they come here when that is used up. A run makes
at most ` + "`MaxModelCalls`" + ` = 10 model calls, then the digest stands in. What each error kind means is in [errors.md](errors.md).

` + LadderText()
	if *updateTable {
		if err := os.WriteFile(ladderDoc, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(ladderDoc)
	if err != nil || string(got) != want {
		t.Errorf("docs/ladder.md is not the ladder of the code (%v): go test ./workflows -run TestLadderDocument "+
			"-update-ladder", err)
	}
	if MaxModelCalls != 10 || strings.Count(want, "\n| ") != len(Ladder)+2 { // with the two lines of the head
		t.Errorf("the document's numbers are wrong")
	}
}
