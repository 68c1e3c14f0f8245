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

// replyTTL bounds an answer of the model. The lease has the same duration: an agent that dies locks the conversation no
// longer than that.
const replyTTL = 5 * time.Minute

// Activities are the model calls of the agent.
type Activities struct {
	api
	// Model sends the context to the agent's model and gives the status and the body of its answer.
	Model func(ctx context.Context, sent Context) (status int, body []byte, err error)
}

// Context is what the model is sent, each part unchanged.
type Context struct {
	System   json.RawMessage   `json:"system"`
	Tools    json.RawMessage   `json:"tools"`
	Messages []json.RawMessage `json:"messages"`
}

// Reply is how a model call ended.
type Reply struct {
	// Answered: the answer is in the conversation.
	Answered bool `json:"answered"`
	// Due: the context has to be compacted before the next model call.
	Due bool `json:"due"`
}

// Reply has the model answer once. It opens a reply, which is a lease with the context, and ends it with the answer;
// precis then says whether a compaction is due. An attempt after a crash uses the same idempotency key, and so gets the
// same lease with the same context. A lease that has ended is not ended twice, so nothing is appended twice.
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
		return Reply{}, err // no answer: the next attempt calls the model again, under the same lease
	}
	// This is Anthropic's answer. The usage of other vendors can be passed on unchanged, too.
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
		// An earlier attempt ended the reply and died before it could return.
		return a.answered(ctx, conversation)
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

// answered reports whether the last message is an answer. If not, the next model call gets one.
func (a *Activities) answered(ctx context.Context, conversation string) (Reply, error) {
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
