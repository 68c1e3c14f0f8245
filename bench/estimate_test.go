package bench

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"precis/internal/testkit"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// minGrowth is the growth of a context, in real tokens, from which its estimate is judged: below it the fixed
// part of a request decides.
const minGrowth = 2000

// sample is one server figure against the estimate of the same content.
type sample struct{ uncalibrated, calibrated float64 }

// BenchmarkEstimate compares the local token estimate with the figures that the servers recorded in real
// transcripts. System prompts and tools are not in these files, so what is compared is growth: the tokens since
// the conversation's first figure. Calibrated is what the trigger uses: the last real figure and, scaled by the
// ratio so far, an estimate of what came after it; its error is a share of the whole context.
//
//	go test ./bench -run '^$' -bench BenchmarkEstimate -benchtime 1x
func BenchmarkEstimate(b *testing.B) {
	root := testkit.Shared(b, "data")
	groups := map[string][]sample{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return collect(root, path, groups)
	})
	if err != nil {
		b.Fatal(err)
	}
	names := make([]string, 0, len(groups))
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-44s %6s  %9s %9s  %9s %9s  %9s\n", "source, language", "n", "median %", "p95 %", "cal. med", "cal. p95", "signed")
	for _, name := range names {
		s := groups[name]
		fmt.Fprintf(&table, "%-44s %6d  %9.1f %9.1f  %9.1f %9.1f  %9.1f\n", name, len(s),
			quantile(s, 0.5, sample.before), quantile(s, 0.95, sample.before), quantile(s, 0.5, sample.after), quantile(s, 0.95, sample.after), signed(s))
	}
	b.Log(table.String())
	for b.Loop() {
		pipeline.EstimateText(table.String())
	}
}

func (s sample) before() float64 { return s.uncalibrated }
func (s sample) after() float64  { return s.calibrated }

func quantile(s []sample, q float64, of func(sample) float64) float64 {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = 100 * math.Abs(of(s[i]))
	}
	slices.Sort(values)
	return values[min(int(q*float64(len(values))), len(values)-1)]
}

// collect adds the samples of one file.
func collect(root, path string, groups map[string][]sample) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	file, err := transcript.Read(f, transcript.Options{Lenient: true})
	if err != nil {
		return nil // not a transcript, or of no format that is known
	}
	for _, c := range file.Conversations {
		sums := make([]int, len(c.Messages)+1)
		for i, m := range c.Messages {
			sums[i+1] = sums[i] + pipeline.EstimateMessage(m)
		}
		group := fmt.Sprintf("%s, %s", filepath.Dir(strings.TrimPrefix(path, root+"/")), language(c.Messages))
		for _, part := range stretches(c) {
			measure(part, sums, func(s sample) { groups[group] = append(groups[group], s) })
		}
	}
	return nil
}

// stretches are the runs of figures with no compaction in between.
func stretches(c transcript.Conversation) [][]transcript.RecordedUsage {
	var out [][]transcript.RecordedUsage
	var run []transcript.RecordedUsage
	next := 0
	for _, u := range c.Usage {
		for next < len(c.Compactions) && c.Compactions[next].Before < u.Covers {
			out, run = append(out, run), nil
			next++
		}
		if u.Used > 0 {
			run = append(run, u)
		}
	}
	return append(out, run)
}

func measure(run []transcript.RecordedUsage, sums []int, give func(sample)) {
	if len(run) < 2 {
		return
	}
	first := run[0]
	for i := 1; i < len(run); i++ {
		u, last := run[i], run[i-1]
		growth := u.Used - first.Used
		estimate := sums[u.Covers] - sums[first.Covers]
		if growth < minGrowth || estimate <= 0 {
			continue
		}
		ratio := 1.0
		if before := sums[last.Covers] - sums[first.Covers]; before >= minGrowth && last.Used > first.Used {
			ratio = float64(last.Used-first.Used) / float64(before)
		}
		predicted := float64(last.Used) + ratio*float64(sums[u.Covers]-sums[last.Covers])
		give(sample{
			uncalibrated: float64(estimate-growth) / float64(growth),
			calibrated:   (predicted - float64(u.Used)) / float64(u.Used),
		})
	}
}

// language says whether what people wrote is mostly in a script without spaces between words.
func language(messages []pipeline.Message) string {
	han, letters := 0, 0
	for _, m := range messages {
		if !m.Genuine() {
			continue
		}
		for _, r := range pipeline.RenderMessage(m) {
			switch {
			case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul):
				han++
			case unicode.IsLetter(r):
				letters++
			}
		}
	}
	if han*4 > letters {
		return "chinese"
	}
	return "latin"
}

// signed is the median error with its sign: below zero the estimate is short.
func signed(s []sample) float64 {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = 100 * s[i].uncalibrated
	}
	slices.Sort(values)
	return values[len(values)/2]
}
