package eval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"flag"
	"io"
	"os"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/internal/eval"
	"precis/internal/testkit/corpus"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// survive is eval.Survive with a context that is never done.
func survive(messages []pipeline.Message, m eval.Method, o eval.Options) eval.Outcome {
	out, err := eval.Survive(context.Background(), messages, m, o)
	if err != nil {
		panic(err)
	}
	return out
}

func report(o eval.Options, talks ...[]pipeline.Message) *eval.Report {
	r := eval.NewReport(o, eval.Methods)
	for _, messages := range talks {
		var outcomes []eval.Outcome
		for _, m := range eval.Methods {
			outcomes = append(outcomes, survive(messages, m, o))
		}
		r.Add(outcomes)
	}
	return r
}

var small = eval.Options{Window: 6000, SummaryTokens: 900, Generations: 4}

// The table of a built-in session. A difference means that compactions keep something else: check whether it is wanted.
func TestGolden(t *testing.T) {
	t.Parallel()
	got := report(small, talk(60)).Text()
	const golden = "testdata/small.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSameFiguresTwice(t *testing.T) {
	t.Parallel()
	var tables [2][]byte
	var pictures [2][]byte
	for i := range tables {
		r := report(small, talk(40))
		var err error
		if tables[i], err = json.Marshal(r); err != nil {
			t.Fatal(err)
		}
		if pictures[i], err = r.SVG(); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(tables[0], tables[1]) {
		t.Error("the figures differ")
	}
	if !bytes.Equal(pictures[0], pictures[1]) {
		t.Error("the pictures differ")
	}
}

// check fails the test unless every share is from 0 to 1, lost facts stay lost, and each kind has as many facts at the
// end as at the beginning.
func check(t *testing.T, name string, out eval.Outcome, generations int) {
	t.Helper()
	for kind, s := range out.Kinds {
		if len(s) != generations {
			t.Errorf("%s, %s: %d generations", name, kind, len(s))
		}
		for g, tally := range s {
			if tally.Kept < 0 || tally.Kept > tally.Said {
				t.Errorf("%s, %s, generation %d: %d of %d", name, kind, g+1, tally.Kept, tally.Said)
			}
			if kind == pipeline.MentionTask || g == 0 {
				continue
			}
			if tally.Said != s[0].Said || tally.Kept > s[g-1].Kept {
				t.Errorf("%s, %s, generation %d: %+v after %+v", name, kind, g+1, tally, s[g-1])
			}
		}
	}
}

func TestSurvivalIsSound(t *testing.T) {
	t.Parallel()
	for _, m := range eval.Methods {
		for _, window := range []int{3000, 6000, 12_000} {
			o := eval.Options{Window: window, SummaryTokens: window / 8, Generations: 3}
			out := survive(talk(40), m, o)
			if out.Compactions < o.Generations {
				t.Errorf("%v in %d tokens: %d compactions", m, window, out.Compactions)
			}
			if out.After >= out.Before {
				t.Errorf("%v in %d tokens: %d tokens before, %d after", m, window, out.Before, out.After)
			}
			check(t, string(m.Summarizer+" "+eval.Summarizer(m.Policy)), out, o.Generations)
		}
	}
}

// A conversation that never reaches the limit is not compacted and adds no figures.
func TestNothingToMeasure(t *testing.T) {
	t.Parallel()
	r := report(eval.Options{Window: 1_000_000, SummaryTokens: 8000, Generations: 5}, talk(3), nil)
	if r.Conversations != 2 || r.Compacted != 0 || r.Rows[0].Compactions != 0 {
		t.Errorf("%+v", r)
	}
	if _, err := r.SVG(); err != nil {
		t.Error(err)
	}
}

func TestPictureIsWellFormed(t *testing.T) {
	t.Parallel()
	r := report(small, talk(60))
	r.Rows[0].Model = "vendor/<name> & more"
	svg, err := r.SVG()
	if err != nil {
		t.Fatal(err)
	}
	elements := map[string]int{}
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	if elements["svg"] != 1 || elements["path"] < 20 || elements["text"] < 20 {
		t.Errorf("elements %v", elements)
	}
}

// Real sessions of every format can be measured. The large ones are left to `precis eval`.
func TestCorpus(t *testing.T) {
	t.Parallel()
	const largest = 300_000
	o := eval.Options{Window: 16_000, SummaryTokens: 2000, Generations: 2}
	compactions := 0
	for _, f := range corpus.Files(t, "") {
		if f.Size > largest || path.Ext(f.Name) == ".md" {
			continue
		}
		read, err := transcript.Read(bytes.NewReader(f.Read(t)), transcript.Options{Lenient: true})
		if err != nil {
			continue // the tests of package transcript list the files that are refused
		}
		for _, c := range read.Conversations {
			for i := range c.Messages {
				c.Messages[i].Tokens = pipeline.EstimateMessage(c.Messages[i])
			}
			for _, m := range []eval.Method{eval.Methods[0], eval.Methods[3]} {
				out := survive(c.Messages, m, o)
				compactions += out.Compactions
				check(t, f.Name, out, o.Generations)
			}
		}
	}
	if corpus.Given() && compactions == 0 {
		t.Error("nothing was compacted")
	}
}
