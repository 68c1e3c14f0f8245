package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// replyTTL bounds one answer of the model. The lease lasts as long, so that an agent that dies locks nothing for
// longer.
const replyTTL = 5 * time.Minute

// Activities hold what the agent needs of the world.
type Activities struct {
	api
	// Model asks the agent's model with the context that precis gave: it gives the status and body of the answer.
	Model func(ctx context.Context, sent Context) (status int, body []byte, err error)
}

// Context is what the model is sent, each part as it is.
type Context struct {
	System   json.RawMessage   `json:"system"`
	Tools    json.RawMessage   `json:"tools"`
	Messages []json.RawMessage `json:"messages"`
}

// Reply is how one call of the model ended.
type Reply struct {
	// Answered says that the answer is in the conversation now.
	Answered bool `json:"answered"`
	// Due says that the context is to be compacted before the next one.
	Due bool `json:"due"`
}

// Reply has the model answer once. precis gives the context under a lease, gets back what came of it, and says
// whether the context is due for a compaction. An attempt after a crash begins with the same idempotency key, and so
// is given the same lease with the same context; a lease that has been ended is not ended again. Nothing is appended
// twice.
func (a *Activities) Reply(ctx context.Context, conversation string) (Reply, error) {
	var begun struct {
		Reply   string
		Context Context
	}
	path := "/v1/conversations/" + url.PathEscape(conversation) + "/replies"
	info := activity.GetInfo(ctx)
	key := info.WorkflowExecution.RunID + "-" + info.ActivityID // the same for every attempt
	if err := a.post(ctx, path, key, map[string]any{"ttl_seconds": int(replyTTL.Seconds())}, &begun); err != nil {
		return Reply{}, err
	}
	status, body, err := a.Model(ctx, begun.Context)
	if err != nil {
		return Reply{}, err // no answer at all: the next attempt asks again, under the same lease
	}
	// This is Anthropic's answer; other vendors' usage is taken as it is, too.
	var answer struct {
		Content json.RawMessage `json:"content"`
		Usage   json.RawMessage `json:"usage"`
	}
	end := map[string]any{"error": map[string]any{"status": status, "body": string(body)}}
	if status == http.StatusOK {
		if err := json.Unmarshal(body, &answer); err != nil {
			return Reply{}, fmt.Errorf("read the model's answer: %w", err)
		}
		end = map[string]any{
			"messages": []any{map[string]any{"role": "assistant", "content": answer.Content}},
			"usage":    answer.Usage,
		}
	}
	var ended struct {
		Trigger struct{ Kind string }
	}
	switch err := a.post(ctx, path+"/"+begun.Reply+"/end", "", end, &ended); {
	case errors.As(err, new(*problem)) && err.(*problem).Code == "reply_ended":
		// An earlier attempt ended it and died before it could say how. If it brought no answer, the next call gets
		// one.
		return a.asItIs(ctx, conversation)
	case err != nil:
		return Reply{}, err
	}
	reply := Reply{Answered: status == http.StatusOK, Due: ended.Trigger.Kind != ""}
	if !reply.Answered && !reply.Due {
		return reply, temporal.NewNonRetryableApplicationError(fmt.Sprintf("the model answered %d: %.200s", status,
			body), "model", nil)
	}
	return reply, nil
}

// asItIs looks whether the last message is an answer.
func (a *Activities) asItIs(ctx context.Context, conversation string) (Reply, error) {
	var now Context
	if err := a.send(ctx, http.MethodGet, "/v1/conversations/"+url.PathEscape(conversation)+"/context", "", nil,
		&now); err != nil {
		return Reply{}, err
	}
	var last struct{ Role string }
	if n := len(now.Messages); n > 0 {
		if err := json.Unmarshal(now.Messages[n-1], &last); err != nil {
			return Reply{}, err
		}
	}
	return Reply{Answered: last.Role == "assistant"}, nil
}
