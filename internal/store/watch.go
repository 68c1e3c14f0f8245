package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// Watch looks at a conversation in the transaction of a change to it, under its lock, and says what the change starts.
// A run that it asks for is written with the change: a crash loses both or neither. It is called again when the
// transaction is tried again, so that it must set its results and not add to them.
type Watch func(ctx context.Context, m Moment) (Verdict, error)

// Verdict is what a watch wants.
type Verdict struct {
	// Run is to be asked for, nil: none. While one is unfinished it is joined.
	Run *RunRequest
	// Measured is what the history is now, when its context was built; nil: it was not.
	Measured *Measured
	// Figure is what is known of the server's figure now, nil: nothing new.
	Figure *Figure
}

// Figure is what a local estimate makes of the server's figure.
type Figure struct {
	// Estimate is the local estimate of what the figure counts, in tokens; Calibration the ratio of the two.
	Estimate    int
	Calibration float64
}

// Watched is what became of a watch.
type Watched struct {
	// Run is the one that was asked for or joined, nil: none.
	Run      *Run
	Attached bool
}

// Moment is a conversation after a change and before its commit.
type Moment struct {
	Conversation Conversation
	Live         LiveSums
	// Marker is the active one, nil: the full history.
	Marker *Marker
	// SinceFigure is the local estimate of what came after the server's figure, SinceMeasured of what came after
	// Conversation.Measured, in tokens; 0 without one.
	SinceFigure, SinceMeasured int64
	// Active is the run that has not ended, nil: none.
	Active *RunBrief
	// Prepared is the marker that waits, and PreparedBy its run; nil: none.
	Prepared   *Marker
	PreparedBy *RunBrief
	// ReplyOpen says that the agent's model is generating.
	ReplyOpen bool
	// Ended is the reply whose end is the change, nil: it is another one.
	Ended *Reply

	store *Store
	tx    pgx.Tx
}

// RunBrief is what a trigger has to know of a run.
type RunBrief struct {
	ID   string
	Kind pipeline.TriggerKind
	// Prepare says that it parks its summary.
	Prepare   bool
	Outcome   Outcome
	ErrorKind pipeline.ErrorKind
	Reason    string
	// Head is the last message that it worked on, as far as that is known.
	Head int64
	// TokensAfter is of the context that it left, 0: none.
	TokensAfter int
}

const runBriefColumns = `r.id, r.trigger_kind, r.prepare, coalesce(r.outcome, ''), r.error_kind, r.reason,
	greatest(r.requested_head, coalesce((r.numbers ->> 'head')::bigint, 0)), r.tokens_after`

func scanRunBrief(row pgx.CollectableRow) (b RunBrief, err error) {
	return b, row.Scan(&b.ID, &b.Kind, &b.Prepare, &b.Outcome, &b.ErrorKind, &b.Reason, &b.Head, &b.TokensAfter)
}

// View reads what is live, all of it.
func (m Moment) View(ctx context.Context) (LiveView, error) {
	v, packed, err := liveView(ctx, m.tx, m.Conversation, LiveOptions{})
	if err != nil {
		return v, err
	}
	return m.store.unpackSummary(v, packed)
}

// LastRun gives the newest run that has ended, nil: none has.
func (m Moment) LastRun(ctx context.Context) (*RunBrief, error) {
	b, err := one(ctx, m.tx, scanRunBrief, `SELECT `+runBriefColumns+` FROM runs r
		WHERE r.cid = $1 AND r.outcome IS NOT NULL AND r.replay_of IS NULL ORDER BY r.created_at DESC, r.id DESC LIMIT 1`, m.Conversation.cid)
	if isNotFound(err) {
		return nil, nil
	}
	return &b, err
}

// Since sums what came after a message.
func (m Moment) Since(ctx context.Context, seq int64) (Sums, error) {
	if seq >= m.Conversation.HeadSeq {
		return Sums{}, nil
	}
	if seq <= 0 {
		return m.Conversation.Sums, nil
	}
	then, err := sumsAt(ctx, m.tx, m.Conversation.cid, seq)
	return m.Conversation.Sums.Minus(then), err
}

// Breaker is Store.GetBreaker for the conversation's own.
func (m Moment) Breaker(ctx context.Context, cooldown time.Duration) (Breaker, error) {
	return getBreaker(ctx, m.tx, ConversationBreaker(m.Conversation.Ref), cooldown)
}

// PassBreaker is Store.PassBreaker for the conversation's own, as a part of the transaction.
func (m Moment) PassBreaker(ctx context.Context, cooldown time.Duration) (bool, error) {
	return passBreaker(ctx, m.tx, ConversationBreaker(m.Conversation.Ref), cooldown)
}

// Look reads a conversation as a watch sees it, all of it from one snapshot, and changes nothing.
func (s *Store) Look(ctx context.Context, ref ConversationRef, look func(ctx context.Context, m Moment) error) error {
	return s.snapshot(ctx, "look at a conversation", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		m, err := moment(ctx, tx, c)
		if err != nil {
			return err
		}
		m.store = s
		return look(ctx, m)
	})
}

// Watch calls a watch without a change.
func (s *Store) Watch(ctx context.Context, ref ConversationRef, watch Watch) (Conversation, Watched, error) {
	var c Conversation
	var w Watched
	err := s.write(ctx, "look at a conversation", func(ctx context.Context, tx pgx.Tx) (err error) {
		if c, err = lockConversation(ctx, tx, ref); err != nil {
			return err
		}
		w, err = s.watchLocked(ctx, tx, &c, watch)
		return err
	})
	return c, w, err
}

// watchLocked calls the watch of a change and does what it wants. c is as the change left it.
func (s *Store) watchLocked(ctx context.Context, tx pgx.Tx, c *Conversation, watch Watch) (Watched, error) {
	var w Watched
	if watch == nil {
		return w, nil
	}
	if !c.ContentDeleted.IsZero() {
		return w, ErrContentDeleted
	}
	m, err := moment(ctx, tx, *c)
	if err != nil {
		return w, err
	}
	m.store = s
	v, err := watch(ctx, m)
	if err != nil {
		return w, err
	}
	if err := c.note(ctx, tx, v); err != nil {
		return w, err
	}
	if v.Run == nil {
		return w, nil
	}
	req, err := v.Run.cleaned()
	if err != nil {
		return w, err
	}
	run, attached, err := requestLocked(ctx, tx, *c, newID(), req)
	w.Run, w.Attached = &run, attached
	return w, err
}

// note keeps what a watch found out.
func (c *Conversation) note(ctx context.Context, tx pgx.Tx, v Verdict) error {
	if v.Measured != nil {
		c.Measured = v.Measured
		_, err := tx.Exec(
			ctx, `UPDATE conversations SET measured_tokens = $2, measured_seq = $3, measured_epoch = epoch WHERE `+
				`cid = $1`,
			c.cid, v.Measured.Tokens, v.Measured.Seq)
		if err != nil {
			return err
		}
	}
	if v.Figure != nil && (v.Figure.Estimate != c.Usage.Estimate || v.Figure.Calibration != c.Usage.Calibration) {
		c.Usage.Estimate, c.Usage.Calibration = v.Figure.Estimate, v.Figure.Calibration
		_, err := tx.Exec(ctx, `UPDATE conversations SET server_estimate = CASE WHEN server_tokens IS NOT NULL THEN $2::bigint END,
			calibration = $3 WHERE cid = $1`, c.cid, v.Figure.Estimate, v.Figure.Calibration)
		return err
	}
	return nil
}

// moment reads all that a trigger compares, in one look and in constant time.
func moment(ctx context.Context, q pgx.Tx, c Conversation) (Moment, error) {
	m := Moment{Conversation: c, tx: q}
	var err error
	if m.Live, m.Marker, err = liveSums(ctx, q, c); err != nil {
		return m, err
	}
	type around struct {
		figure, measured     int64
		activeID, preparedID *string
		reply                bool
	}
	var measuredSeq int64
	if c.Measured != nil {
		measuredSeq = c.Measured.Seq
	}
	a, err := one(ctx, q, func(row pgx.CollectableRow) (a around, err error) {
		return a, row.Scan(&a.figure, &a.measured, &a.activeID, &a.preparedID, &a.reply)
	}, `SELECT coalesce((SELECT tokens_sum FROM messages WHERE cid = $1 AND seq = $2), 0),
			coalesce((SELECT tokens_sum FROM messages WHERE cid = $1 AND seq = $3), 0),
			(SELECT id FROM runs WHERE cid = $1 AND outcome IS NULL AND replay_of IS NULL),
			(SELECT id FROM markers WHERE cid = $1 AND status = 'prepared'),
			EXISTS (SELECT FROM replies WHERE cid = $1 AND ended_at IS NULL AND expires_at > clock_timestamp())`,
		c.cid, c.Usage.CoversSeq, measuredSeq)
	if err != nil {
		return m, err
	}
	if c.Usage.Tokens > 0 {
		m.SinceFigure = c.Sums.Tokens - a.figure
	}
	if c.Measured != nil {
		m.SinceMeasured = c.Sums.Tokens - a.measured
	}
	m.ReplyOpen = a.reply
	if a.activeID != nil {
		if m.Active, err = runBrief(ctx, q, *a.activeID); err != nil {
			return m, err
		}
	}
	if a.preparedID != nil {
		prepared, err := marker(ctx, q, c.cid, *a.preparedID)
		if err != nil {
			return m, err
		}
		m.Prepared = &prepared
		if m.PreparedBy, err = runBrief(ctx, q, prepared.Run); err != nil {
			return m, err
		}
	}
	return m, nil
}

func runBrief(ctx context.Context, q querier, id string) (*RunBrief, error) {
	b, err := one(ctx, q, scanRunBrief, `SELECT `+runBriefColumns+` FROM runs r WHERE r.id = $1`, id)
	return &b, err
}
