// Package bench measures the figures that the documentation gives.
package bench

import (
	"fmt"
	"strings"
	"testing"

	"precis/pipeline"
)

// conversation returns a conversation of about the given number of chars: turns in which an agent writes, calls a tool,
// reads its result, and sums up.
func conversation(chars int, unit string) []pipeline.Message {
	var ms []pipeline.Message
	add := func(role pipeline.Role, parts ...pipeline.Part) {
		ms = append(ms, pipeline.Message{Seq: int64(len(ms) + 1), Role: role, Parts: parts})
	}
	text := func(n int) string { return strings.Repeat(unit, n/pipeline.Chars(unit)) }
	for size := 0; size < chars; size += 10_000 {
		id := fmt.Sprintf("call_%d", len(ms))
		add(pipeline.RoleUser, pipeline.Part{
			Kind: pipeline.PartText,
			Text: "<user_query>" + text(300) + "</user_query>\n" + text(700),
		})
		add(pipeline.RoleAssistant,
			pipeline.Part{Kind: pipeline.PartText, Text: text(500)},
			pipeline.Part{
				Kind: pipeline.PartToolCall, CallID: id, Name: "Read",
				Input: `{"file_path":"src/main.go","note":"` + text(500) + `"}`,
			})
		add(pipeline.RoleTool, pipeline.Part{
			Kind: pipeline.PartToolResult, CallID: id,
			Content: []pipeline.Part{{Kind: pipeline.PartText, Text: text(6000)}},
		})
		add(pipeline.RoleAssistant, pipeline.Part{Kind: pipeline.PartText, Text: text(2000)})
	}
	return ms
}

// BenchmarkSlim slims 32 million chars to the default budget, with and without dropping the tools first, and to the
// budget of a small summarizer.
func BenchmarkSlim(b *testing.B) {
	const chars = 32_000_000
	for _, kind := range []struct{ name, unit string }{
		{"prose", "The parser is mended, and one test still fails. "},
		{"code", "\tif err := s.store.Append(ctx, id, ms); err != nil {\n\t\treturn err\n\t}\n"},
		{"han", "要約を確認してから会話を続ける。"},
	} {
		ms := conversation(chars, kind.unit)
		for _, way := range []struct {
			name      string
			budget    int
			threshold float64
		}{
			{"tools_dropped", pipeline.MaxSummarizationPromptChars, pipeline.ToolMessageDropThreshold},
			{"fair_shares", pipeline.MaxSummarizationPromptChars, 1},
			{"small_window", 40_000, pipeline.ToolMessageDropThreshold},
			{"within_budget", 2 * chars, pipeline.ToolMessageDropThreshold},
		} {
			in := pipeline.SlimInput{
				Messages: ms, BudgetChars: way.budget, ToolDropThreshold: way.threshold,
				MinUsefulChars: pipeline.DefaultMinUsefulChars,
			}
			b.Run(kind.name+"/"+way.name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if out, err := pipeline.Slim(b.Context(), in); err != nil || out.Chars > way.budget {
						b.Fatalf("%d chars with a budget of %d, %v", out.Chars, way.budget, err)
					}
				}
				b.ReportMetric(chars*float64(b.N)/1e6/b.Elapsed().Seconds(), "Mchars/s")
			})
		}
	}
}

// BenchmarkSlimGrowth shows that the cost grows with the size, not its square.
func BenchmarkSlimGrowth(b *testing.B) {
	for _, chars := range []int{1_000_000, 4_000_000, 16_000_000, 64_000_000} {
		ms := conversation(chars, "The parser is mended, and one test still fails. ")
		in := pipeline.SlimInput{
			Messages: ms, BudgetChars: chars / 10, ToolDropThreshold: 1,
			MinUsefulChars: pipeline.DefaultMinUsefulChars,
		}
		b.Run(fmt.Sprintf("%dM", chars/1_000_000), func(b *testing.B) {
			for b.Loop() {
				if _, err := pipeline.Slim(b.Context(), in); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(chars)*float64(b.N)/1e6/b.Elapsed().Seconds(), "Mchars/s")
		})
	}
}
