package activities

import (
	"context"
	"errors"
	"time"

	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
)

// heavyBytes is the size of a live conversation from which a stage that reads it takes turns with those of other
// tenants. What is smaller keeps a core for some hundredths of a second.
const heavyBytes = 256 << 10

// errBusy is the end of an attempt whose turn did not come. It is tried again.
var errBusy = errors.New("other runs keep the worker busy: waiting for a turn")

// takeTurn waits until the attempt may compute with what it has read. It holds its place until it ends or asks a model,
// and waits no longer than half of its time, so that the other half is left for the work. Heartbeats are sent
// meanwhile.
func (a *Activities) takeTurn(ctx context.Context, at *attempt, live contexts.Source) error {
	if at.heavy || sizeOf(live) < heavyBytes {
		return nil
	}
	at.heavy = true
	return a.takeTurnAgain(ctx, at)
}

// takeTurnAgain waits for the next turn of an attempt that gave its own away, unless it had none.
func (a *Activities) takeTurnAgain(ctx context.Context, at *attempt) error {
	if !at.heavy {
		return nil
	}
	began := time.Now()
	waiting := ctx
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	turn, err := a.turns.Take(waiting, at.ref.Tenant)
	waited := time.Since(began)
	at.waited += waited
	a.Metrics.TurnTaken(ctx, string(at.stage), waited)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errBusy
	}
	at.turn = turn
	return nil
}

// sizeOf is the size of what the stages decode of a live conversation, in bytes.
func sizeOf(live contexts.Source) int {
	n := len(live.Summary)
	for _, messages := range [][]conversations.Message{live.Carried, live.Tail} {
		for _, m := range messages {
			n += len(m.Native)
		}
	}
	return n
}
