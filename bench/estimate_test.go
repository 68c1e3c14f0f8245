package bench

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"testing"
	"unicode"

	"precis/internal/llm"
	"precis/internal/testkit/corpus"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// minGrowth is the growth of a context, in real tokens, from which its estimate is compared: below it the fixed part of
// a request dominates.
const minGrowth = 2000

// sample has the errors of two estimates of the content of one server figure.
type sample struct{ uncalibrated, calibrated float64 }

// BenchmarkEstimate compares the local token estimate with the figures that the servers recorded in real
// transcripts, by vendor and language, and file by file. System prompts and tools are not in these files, so what is
// compared is growth: the tokens since the first figure. Before calibration the estimate is scaled by what is known of
// the model's tokenizer; calibrated is what the trigger uses: the last real figure and, scaled by the ratio so far, an
// estimate of what came after it; its error is a share of the whole context.
//
// A figure that falls while the conversation grows shows that the request had content that is not in the file:
// reminders that the agent's program adds and removes, reasoning. Such a file shows little about the estimate, and has
// a separate row.
//
//	PRECIS_CORPUS=DIR go test ./bench -run '^$' -bench BenchmarkEstimate -benchtime 1x -v
func BenchmarkEstimate(b *testing.B) {
	groups, files := map[string][]sample{}, map[string][]sample{}
	for _, f := range corpus.Files(b, "") {
		collect(f, f.Read(b), groups, files)
	}
	b.Log(table("vendor, language", groups) + table("file", files))
}

func table(title string, groups map[string][]sample) string {
	var out strings.Builder
	fmt.Fprintf(&out, "\n%-64s %6s  %9s %9s  %9s %9s  %9s\n", title, "n", "median %", "p95 %", "cal. med", "cal. p95",
		"signed")
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		s := groups[name]
		fmt.Fprintf(&out, "%-64s %6d  %9.1f %9.1f  %9.1f %9.1f  %9.1f\n", name, len(s),
			quantile(s, 0.5, sample.before), quantile(s, 0.95, sample.before), quantile(s, 0.5, sample.after),
			quantile(s, 0.95, sample.after), signed(s))
	}
	return out.String()
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
func collect(f corpus.File, data []byte, groups, files map[string][]sample) {
	file, err := transcript.Read(bytes.NewReader(data), transcript.Options{Lenient: true})
	if err != nil {
		return // not a transcript, or of an unknown format
	}
	for _, c := range file.Conversations {
		sums := make([]int, len(c.Messages)+1)
		for i, m := range c.Messages {
			sums[i+1] = sums[i] + pipeline.EstimateMessage(m)
		}
		vendor, ratio := tokenizer(c)
		group := fmt.Sprintf("%s, %s", vendor, language(c.Messages))
		parts, fell := stretches(c)
		if fell {
			group += " (not all was recorded)"
		}
		for _, part := range parts {
			measure(part, sums, ratio, func(s sample) {
				groups[group] = append(groups[group], s)
				name := fmt.Sprintf("%s, %s", path.Base(f.Name), c.Model)
				files[name] = append(files[name], s)
			})
		}
	}
}

// tokenizer returns the vendor of a conversation's model and the ratio of its tokenizer.
func tokenizer(c transcript.Conversation) (string, float64) {
	vendor, model := c.Vendor, c.Model
	if m, known := (llm.Models{}).Lookup("", model); known {
		vendor = m.Vendor
	}
	ratio := llm.Models{}.TokenRatio(vendor, model)
	if vendor == "" || ratio == 1 {
		vendor = "others"
	}
	return vendor, ratio
}

// stretches returns the runs of figures with no compaction in between, and whether a figure fell within one: it then
// begins another run.
func stretches(c transcript.Conversation) (out [][]transcript.RecordedUsage, fell bool) {
	var run []transcript.RecordedUsage
	next := 0
	for _, u := range c.Usage {
		for next < len(c.Compactions) && c.Compactions[next].Before < u.Covers {
			out, run = append(out, run), nil
			next++
		}
		if u.Used <= 0 {
			continue
		}
		if len(run) > 0 && u.Used < run[len(run)-1].Used {
			out, run, fell = append(out, run), nil, true
		}
		run = append(run, u)
	}
	return append(out, run), fell
}

func measure(run []transcript.RecordedUsage, sums []int, prior float64, give func(sample)) {
	if len(run) < 2 {
		return
	}
	first := run[0]
	for i := 1; i < len(run); i++ {
		u, last := run[i], run[i-1]
		growth := u.Used - first.Used
		estimate := prior * float64(sums[u.Covers]-sums[first.Covers])
		if growth < minGrowth || estimate <= 0 {
			continue
		}
		ratio := prior
		if before := sums[last.Covers] - sums[first.Covers]; before >= minGrowth && last.Used > first.Used {
			ratio = float64(last.Used-first.Used) / float64(before)
		}
		predicted := float64(last.Used) + ratio*float64(sums[u.Covers]-sums[last.Covers])
		give(sample{
			uncalibrated: (estimate - float64(growth)) / float64(growth),
			calibrated:   (predicted - float64(u.Used)) / float64(u.Used),
		})
	}
}

// language returns whether people wrote mostly in a script without spaces between words.
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

// signed returns the median error with its sign: below zero the estimate is too low.
func signed(s []sample) float64 {
	values := make([]float64, len(s))
	for i := range s {
		values[i] = 100 * s[i].uncalibrated
	}
	slices.Sort(values)
	return values[len(values)/2]
}
