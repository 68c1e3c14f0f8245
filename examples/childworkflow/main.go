// Command childworkflow is an agent that is a Temporal workflow, and has its context compacted by precis as a child of
// that workflow. It reads the user's messages from standard input, a message a line; README.md says how to run it.
//
//	agent.go       the workflow
//	activities.go  a model call
//	api.go         the HTTP API
//	main.go        the user, and the worker that executes the workflow
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

const taskQueue = "example-agent"

// options are those of the program.
type options struct {
	api api
	// tenant owns the API key.
	tenant string
	// vendor is the base URL of Anthropic's API and vendorKey its key. model is the model's name and window its context
	// window in tokens, 0 for what precis knows of the model.
	vendor, vendorKey, model string
	window                   int
	temporal                 client.Options
}

func main() {
	if err := run(context.Background(), optionsFromEnvironment(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "childworkflow:", err)
		os.Exit(1)
	}
}

func optionsFromEnvironment() options {
	window, _ := strconv.Atoi(os.Getenv("CONTEXT_WINDOW"))
	return options{
		api:    api{url: env("PRECIS_URL", "http://127.0.0.1:8700"), key: os.Getenv("PRECIS_KEY")},
		tenant: env("PRECIS_TENANT", "default"),
		vendor: env("ANTHROPIC_BASE_URL", "https://api.anthropic.com"), vendorKey: os.Getenv("ANTHROPIC_API_KEY"),
		model: env("MODEL", "claude-sonnet-4-5"), window: window,
		temporal: client.Options{
			HostPort: env("TEMPORAL_ADDRESS", "127.0.0.1:7233"), Namespace: env("TEMPORAL_NAMESPACE", "default"),
			// The SDK's own logger writes everything to standard output, where the answers go.
			Logger: log.NewStructuredLogger(slog.New(slog.NewTextHandler(os.Stderr,
				&slog.HandlerOptions{Level: slog.LevelWarn}))),
		},
	}
}

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// run is the agent's worker and its user in one process.
func run(ctx context.Context, o options, in io.Reader, out io.Writer) error {
	c, err := client.DialContext(ctx, o.temporal)
	if err != nil {
		return err
	}
	defer c.Close()
	w := worker.New(c, taskQueue, worker.Options{})
	w.RegisterWorkflow(AgentWorkflow)
	w.RegisterActivity(&Activities{api: o.api, Model: o.ask})
	if err := w.Start(); err != nil {
		return err
	}
	defer w.Stop()

	// The agent starts its compactions itself, so precis does not.
	var conversation struct{ ID string }
	err = o.api.post(ctx, "/v1/conversations", "", map[string]any{
		"format": "anthropic", "model": map[string]any{
			"vendor": "anthropic", "name": o.model,
			"context_window": o.window,
		},
		"system": "You are a helpful assistant.", "tools": []any{},
		"settings": map[string]any{"trigger": map[string]any{"auto": false}},
	}, &conversation)
	if err != nil {
		return err
	}
	agent, err := c.ExecuteWorkflow(ctx,
		client.StartWorkflowOptions{ID: "agent-" + conversation.ID, TaskQueue: taskQueue},
		AgentWorkflow, Agent{Tenant: o.tenant, Conversation: conversation.ID})
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if err := o.talk(ctx, c, agent.GetID(), conversation.ID, lines.Text(), out); err != nil {
			return err
		}
	}
	if err := c.SignalWorkflow(ctx, agent.GetID(), "", HangUpSignal, nil); err != nil {
		return err
	}
	if err := agent.Get(ctx, nil); err != nil {
		return err
	}
	return lines.Err()
}

// talk appends a message of the user, has it answered and prints the answer.
func (o options) talk(ctx context.Context, c client.Client, agent, conversation, line string, out io.Writer) error {
	path := "/v1/conversations/" + conversation
	message := map[string]any{"role": "user", "content": line}
	if err := o.api.post(ctx, path+"/messages", "", map[string]any{"messages": []any{message}},
		&struct{}{}); err != nil {
		return err
	}
	update, err := c.UpdateWorkflow(ctx,
		client.UpdateWorkflowOptions{
			WorkflowID: agent, UpdateName: AnswerUpdate,
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
	if err != nil {
		return err
	}
	var answered Answered
	if err := update.Get(ctx, &answered); err != nil {
		return err
	}
	var now Context
	if err := o.api.send(ctx, http.MethodGet, path+"/context", "", nil, &now); err != nil {
		return err
	}
	var last struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(now.Messages[len(now.Messages)-1], &last); err != nil {
		return err
	}
	for _, part := range last.Content {
		_, _ = fmt.Fprintln(out, part.Text)
	}
	for _, done := range answered.Compactions {
		_, _ = fmt.Fprintf(out, "[compacted: %s, %d tokens before, %d after]\n", done.Outcome, done.TokensBefore,
			done.TokensAfter)
	}
	return nil
}

// ask calls Anthropic's Messages API with the context as it is.
func (o options) ask(ctx context.Context, sent Context) (int, []byte, error) {
	body, err := json.Marshal(map[string]any{
		"model": o.model, "max_tokens": 1024, "system": sent.System, "tools": sent.Tools, "messages": sent.Messages,
	})
	if err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.vendor+"/v1/messages", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", o.vendorKey)
	req.Header.Set("Anthropic-Version", "2023-06-01")
	return do(req)
}
