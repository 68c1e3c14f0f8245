package main

import (
	"fmt"
	"precis"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

// maxTries bounds the model calls for one answer: a context that does not fit after two compactions never will.
const maxTries = 3

// The names that the user's program and the workflow share.
const (
	// AnswerUpdate has the agent answer the last message of the user, and completes when it has.
	AnswerUpdate = "answer"
	// HangUpSignal ends the agent.
	HangUpSignal = "hang-up"
)

// Agent is what the workflow starts with. Messages stay in precis: only ids and numbers pass through Temporal.
type Agent struct {
	// Tenant and Conversation name the conversation, which exists already.
	Tenant       string `json:"tenant"`
	Conversation string `json:"conversation"`
}

// Answered is the result of AnswerUpdate.
type Answered struct {
	// Compactions are the results of the compactions before the answer.
	Compactions []precis.Result `json:"compactions,omitempty"`
}

// AgentWorkflow answers the user's messages, one after another, until the user hangs up. When precis or the model says
// that the context is full, the workflow compacts the conversation as its child.
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
			// Between two replies, never within one. If another compaction is running, this waits for its end.
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
