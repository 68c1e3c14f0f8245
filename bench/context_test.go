package bench

import (
	"fmt"
	"testing"
	"time"

	"precis/pipeline"
)

// prose is the text of the agent in the measured conversations.
const prose = "The parser is mended, and one test still fails. "

// sizeOf returns the size of messages as Slim renders them, in chars.
func sizeOf(ms []pipeline.Message) int {
	n := 0
	for _, m := range ms {
		n += pipeline.Chars(pipeline.RenderMessage(m))
	}
	return n
}

// slimTime returns how long Slim takes for messages. It is the unit of the ratios here, since Slim looks at every byte
// about once.
func slimTime(b *testing.B, ms []pipeline.Message) time.Duration {
	b.Helper()
	in := pipeline.SlimInput{
		Messages: ms, BudgetChars: sizeOf(ms) / 10, ToolDropThreshold: 1,
		MinUsefulChars: pipeline.DefaultMinUsefulChars,
	}
	best := time.Duration(0)
	for range 3 {
		start := time.Now()
		if _, err := pipeline.Slim(b.Context(), in); err != nil {
			b.Fatal(err)
		}
		if took := time.Since(start); best == 0 || took < best {
			best = took
		}
	}
	return best
}

// ratio reports the time of an operation as a multiple of the time of Slim.
func ratio(b *testing.B, slim time.Duration) {
	b.Helper()
	b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/slim.Seconds(), "×Slim")
}

// stored returns messages as the store returns them: all different, and with their sizes, which are counted when they
// are stored.
func stored(ms []pipeline.Message) []pipeline.Message {
	for i := range ms {
		mark := fmt.Sprintf("Message %d. ", i)
		for j := range ms[i].Parts {
			p := &ms[i].Parts[j]
			if p.Text != "" {
				p.Text = mark + p.Text
			}
			for k := range p.Content {
				p.Content[k].Text = mark + p.Content[k].Text
			}
		}
		ms[i].Tokens = pipeline.EstimateMessage(ms[i])
	}
	return ms
}

// BenchmarkContext builds contexts of long conversations, as on every read: with each valve, and in two sizes to show
// that the cost grows with the size.
func BenchmarkContext(b *testing.B) {
	for _, messages := range []int{15_000, 60_000} {
		ms := stored(conversation(messages/4*10_000, prose))
		slim := slimTime(b, ms)
		for _, valve := range []pipeline.TailValve{
			pipeline.TailValveNone, pipeline.TailValvePreviews,
			pipeline.TailValveHeadTail,
		} {
			in := pipeline.ContextInput{
				Live: ms, Settings: pipeline.DefaultSettings(), Window: 200_000, Vendor: "anthropic", Valve: valve,
				ValveUpTo: int64(len(ms)),
			}
			b.Run(fmt.Sprintf("%s/%d", valve, messages), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := pipeline.BuildContext(b.Context(), in); err != nil {
						b.Fatal(err)
					}
				}
				ratio(b, slim)
			})
		}
	}
}
