package main

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"precis"
)

// maxTries is how often one answer is asked for: a context that does not fit even after two compactions never will.
const maxTries = 3

// The names by which the user's program and the workflow meet.
const (
	// AnswerUpdate has the agent answer what the user appended last, and ends when it has.
	AnswerUpdate = "answer"
	// HangUpSignal ends the agent.
	HangUpSignal = "hang-up"
)

// Agent is what the workflow starts with. What is said stays in precis: only ids and numbers pass through Temporal.
type Agent struct {
	// Tenant and Conversation name the conversation, which is there already.
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
}

// Answered tells of one answer.
type Answered struct {
	// Compactions are what became of those that it took.
	Compactions []precis.Result `json:"compactions,omitempty"`
}

// AgentWorkflow answers the user's messages, one after another, until the user hangs up. It looks to its own context:
// when precis says that it is full, or the model does, the conversation is compacted as a child of this workflow.
func AgentWorkflow(ctx workflow.Context, agent Agent) error {
	turn := workflow.NewMutex(ctx)
	err := workflow.SetUpdateHandler(ctx, AnswerUpdate, func(ctx workflow.Context) (Answered, error) {
		if err := turn.Lock(ctx); err != nil {
			return Answered{}, err
		}
		defer turn.Unlock()
		return agent.answer(ctx)
	})
	if err != nil {
		return err
	}
	workflow.GetSignalChannel(ctx, HangUpSignal).Receive(ctx, nil)
	return workflow.Await(ctx, func() bool { return workflow.AllHandlersFinished(ctx) })
}

// answer has the model answer the user's last message.
func (agent Agent) answer(ctx workflow.Context) (answered Answered, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: replyTTL,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: time.Second, MaximumAttempts: 5},
	})
	for range maxTries {
		var reply Reply
		if err := workflow.ExecuteActivity(ctx, (*Activities).Reply, agent.Conversation).Get(ctx, &reply); err != nil {
			return answered, err
		}
		if reply.Due {
			// Between two replies, never within one. If somebody else's compaction is under way, this waits for that.
			done, err := precis.Compact(ctx, precis.Request{Tenant: agent.Tenant, Conversation: agent.Conversation})
			if err != nil {
				return answered, err
			}
			answered.Compactions = append(answered.Compactions, done)
		}
		if reply.Answered {
			return answered, nil
		}
	}
	return answered, temporal.NewNonRetryableApplicationError(
		fmt.Sprintf("the context does not fit the model after %d tries", maxTries), "context_too_large", nil)
}
