// Command pipeline compacts a transcript with the library precis/pipeline alone: no database, no Temporal, no server.
//
//	go run ./examples/pipeline -window 20000 session.jsonl > compacted.jsonl
//
// With ANTHROPIC_API_KEY set it asks Anthropic's model for the summary, else it uses the digest. Read compact.go first;
// the README explains it.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"

	"precis/pipeline"
)

func main() {
	window := flag.Int("window", 200_000, "the agent's context window, in `tokens`")
	flag.Parse()
	model := Model{}
	if key := os.Getenv("ANTHROPIC_API_KEY"); key != "" {
		model = anthropic("https://api.anthropic.com", key, "claude-sonnet-4-5")
	}
	if err := run(context.Background(), flag.Arg(0), *window, model, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, window int, model Model, out, report io.Writer) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	done, err := Compact(ctx, file, out, window, pipeline.DefaultSettings(), model)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(report, "%s\n%d messages summarized, %d kept, %d tokens before, %d after\n",
		done.Decision.Reason, done.Summarized, done.Kept, done.Before, done.After)
	if done.Refused != nil {
		_, _ = fmt.Fprintf(report, "the digest was used instead of a model's summary: %v\n", done.Refused)
	}
	return nil
}

// anthropic returns a model that calls Anthropic's Messages API, as a program's own client would.
func anthropic(base, key, name string) Model {
	return Model{
		Summarizer: pipeline.Summarizer{
			Kind: pipeline.SummarizerExternal, Vendor: "anthropic", Model: name,
			Window: 200_000, MaxOutput: 64_000,
		},
		Ask: func(r pipeline.SummaryRequest, maxOutput int) (pipeline.Answer, error) {
			body, err := json.Marshal(map[string]any{
				"model": name, "max_tokens": maxOutput, "system": r.System,
				"messages": []any{map[string]any{"role": "user", "content": r.User}},
			})
			if err != nil {
				return pipeline.Answer{}, err
			}
			req, err := http.NewRequest(http.MethodPost, base+"/v1/messages", bytes.NewReader(body))
			if err != nil {
				return pipeline.Answer{}, err
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("X-Api-Key", key)
			req.Header.Set("Anthropic-Version", "2023-06-01")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				return pipeline.Answer{}, pipeline.Errorf(pipeline.Network, "%w", err)
			}
			defer func() { _ = res.Body.Close() }()
			var got struct {
				Content    []struct{ Type, Text string }
				StopReason string `json:"stop_reason"`
				Error      struct{ Message string }
			}
			if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
				return pipeline.Answer{}, pipeline.Errorf(pipeline.MalformedOutput, "%w", err)
			}
			if res.StatusCode != http.StatusOK {
				return pipeline.Answer{}, pipeline.Errorf(pipeline.ServerError, "%s: %s", res.Status, got.Error.Message)
			}
			answer := pipeline.Answer{Finish: finish[got.StopReason]}
			for _, block := range got.Content {
				switch block.Type {
				case "text":
					answer.Text += block.Text
				case "tool_use":
					answer.ToolCalls++
				}
			}
			return answer, nil
		},
	}
}

// finish returns the library's value for Anthropic's stop reason.
var finish = map[string]pipeline.Finish{
	"end_turn": pipeline.FinishStop, "stop_sequence": pipeline.FinishStop, "max_tokens": pipeline.FinishLength,
	"tool_use": pipeline.FinishToolUse, "refusal": pipeline.FinishRefusal,
}
