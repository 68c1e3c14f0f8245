package bench

import (
	"fmt"
	"strings"
	"testing"

	"precis/pipeline"
)

// summaryOf returns a summary with so many identifiers, half of which are in the conversation, and quotes of the user.
func summaryOf(ms []pipeline.Message, identifiers int) string {
	var s strings.Builder
	s.WriteString("1. Primary request and intent:\nThe user said \"The parser is mended\" and \"never touch the " +
		"database\".\n\n3. Files:\n")
	for i := range identifiers {
		if i%2 == 0 {
			fmt.Fprintf(&s, "- src/part%d/file%d.go was changed.\n", i%50, i*7%len(ms))
		} else {
			fmt.Fprintf(&s, "- /srv/other/part%d/file%d.go took %d ms.\n", i%50, i, i+5)
		}
	}
	return s.String()
}

// working adds a path to every call and its result, and a limit to every tenth user message.
func working(ms []pipeline.Message) []pipeline.Message {
	for i := range ms {
		path := fmt.Sprintf("src/part%d/file%d.go", i%50, i)
		for j := range ms[i].Parts {
			p := &ms[i].Parts[j]
			switch {
			case p.Kind == pipeline.PartToolCall:
				p.Input = fmt.Sprintf(`{"file_path":%q}`, path)
			case ms[i].Role == pipeline.RoleUser && i%10 == 0:
				p.Text += fmt.Sprintf(" Never touch table %d of the database.", i)
			}
			for k := range p.Content {
				p.Content[k].Text = path + "\n" + p.Content[k].Text
			}
		}
	}
	return ms
}

// BenchmarkVerify checks summaries against sources of many sizes, with a tail as large as a window takes. The
// figures are MB of source per second, and the time as a multiple of the time of Slim.
func BenchmarkVerify(b *testing.B) {
	for _, megabytes := range []int{2, 18, 72} {
		source := working(stored(conversation(megabytes*1_000_000, prose)))
		tail := working(stored(conversation(800_000, prose)))
		slim := slimTime(b, source)
		size := float64(sizeOf(source)) / 1e6
		for _, identifiers := range []int{20, 400} {
			summary := summaryOf(source, identifiers)
			b.Run(fmt.Sprintf("%dMB/%d_identifiers", megabytes, identifiers), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, _, err := pipeline.VerifySummary(b.Context(), summary, source, tail); err != nil {
						b.Fatal(err)
					}
				}
				ratio(b, slim)
				b.ReportMetric(size*float64(b.N)/b.Elapsed().Seconds(), "MB/s")
			})
		}
	}
}
