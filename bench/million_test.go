package bench

import (
	"fmt"
	"testing"

	"precis/pipeline"
)

// BenchmarkMillion takes a million small messages through the stages that read all of them.
func BenchmarkMillion(b *testing.B) {
	const count = 1_000_000
	ms := make([]pipeline.Message, count)
	for i := range ms {
		ms[i] = pipeline.Message{
			Seq: int64(i + 1), Role: []pipeline.Role{pipeline.RoleUser, pipeline.RoleAssistant}[i%2],
			Parts: []pipeline.Part{{Kind: pipeline.PartText, Text: fmt.Sprintf("Message %d.", i)}},
		}
	}
	s := pipeline.DefaultSettings()
	for _, stage := range []struct {
		name string
		run  func() error
	}{
		{"partition", func() error {
			_, err := pipeline.PartitionMessages(b.Context(),
				pipeline.PartitionInput{Messages: ms, Settings: s, Window: 200_000})
			return err
		}},
		{"slim", func() error {
			_, err := pipeline.Slim(b.Context(), pipeline.SlimInput{
				Messages: ms, BudgetChars: s.MaxPromptChars, ToolDropThreshold: s.ToolDropThreshold,
				MinUsefulChars: s.MinUsefulChars,
			})
			return err
		}},
		{"digest", func() error {
			_, err := pipeline.Digest(b.Context(),
				pipeline.DigestInput{Messages: ms, BudgetChars: 4 * s.SummaryMaxTokens})
			return err
		}},
		{"context", func() error {
			_, err := pipeline.BuildContext(b.Context(),
				pipeline.ContextInput{Live: ms, Settings: s, Window: 200_000, Vendor: "anthropic"})
			return err
		}},
	} {
		b.Run(stage.name, func(b *testing.B) {
			for b.Loop() {
				if err := stage.run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
