package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"precis/pipeline"
)

// ApplyMarker makes a run's compaction take effect, in one transaction: the marker, the conversation's active marker
// and epoch, the run's end and the event. It checks that no reply is being generated, that the covered messages are the
// ones that were summarized, and that the base is still the active marker; a *ConflictError says what failed, and then
// nothing has changed. Called again for the same run it gives the first result, even when that has been undone since.
// What had been prepared by another run is discarded.
func (s *Store) ApplyMarker(ctx context.Context, ref RunRef, n NewMarker, facts RunFacts) (Marker, error) {
	return s.markRun(ctx, "apply a marker", ref, n, facts, MarkerApplied)
}

// PrepareMarker parks a run's compaction for ApplyPrepared. It checks the same, but for open replies, and ends the
// run as prepared. A summary that was prepared before is discarded. The marker of a run that is to take effect, and
// was only kept from it by a reply, is applied when that reply has ended meanwhile.
func (s *Store) PrepareMarker(ctx context.Context, ref RunRef, n NewMarker, facts RunFacts) (Marker, error) {
	return s.markRun(ctx, "prepare a marker", ref, n, facts, MarkerPrepared)
}

func (s *Store) markRun(ctx context.Context, what string, ref RunRef, n NewMarker, facts RunFacts,
	wanted MarkerStatus,
) (Marker, error) {
	var m Marker
	id := newID()
	err := s.write(ctx, what, func(ctx context.Context, tx pgx.Tx) error {
		status := wanted
		r, err := run(ctx, tx, ref)
		if err != nil {
			return err
		}
		c, err := lockConversation(ctx, tx, ConversationRef{ref.Tenant, r.Conversation})
		if err != nil {
			return err
		}
		// Under the lock: what an earlier attempt did is visible now.
		if r, err = run(ctx, tx, ref); err != nil {
			return err
		}
		if r.Marker != "" {
			m, err = marker(ctx, tx, c.cid, r.Marker)
			return err
		}
		if r.Outcome != "" {
			return conflictf(ConflictRunFinished, "run %s has ended %s", ref.ID, r.Outcome)
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		switch err := noReplyOpen(ctx, tx, c.cid); {
		case err == nil && !r.Prepare:
			status = MarkerApplied
		case status == MarkerApplied && err != nil, err != nil && !errors.Is(err, ErrReplyOpen):
			return err
		}
		n, err := checkMarker(ctx, tx, c, n)
		if err != nil {
			return err
		}
		if err := discardPrepared(ctx, tx, c.cid, "",
			"another compaction of the conversation came after it"); err != nil {
			return err
		}
		m = Marker{ID: id, NewMarker: n, Run: ref.ID, Status: status, Origin: OriginOurs}
		if m, err = insertMarker(ctx, tx, c, m); err != nil {
			return err
		}
		facts := facts
		facts.CoversFrom, facts.CoversTo, facts.CoveredMessages = n.CoversFrom, n.CoversTo, n.CoveredMessages
		facts.CoveredChain, facts.Digest = n.CoveredChain, n.Digest
		facts.TokensBefore, facts.TokensAfter = n.TokensBefore, n.TokensAfter
		outcome, kind := OutcomeApplied, EventApplied
		if status == MarkerPrepared {
			outcome, kind = OutcomePrepared, EventPrepared
		}
		_, err = finishLocked(ctx, tx, r,
			RunEnd{Outcome: outcome, Facts: facts, Event: &Event{Kind: kind, Data: markerEvent(m)}}, ofMarker(m.ID))
		return err
	})
	return m, err
}

// checkMarker compares a marker with the conversation that the transaction holds, and fills in what "again what the
// base covers" means.
func checkMarker(ctx context.Context, tx pgx.Tx, c Conversation, n NewMarker) (NewMarker, error) {
	if n.Base != c.ActiveMarker {
		return n, conflictf(ConflictBaseChanged, "the summary was written on marker %q, active is %q now", n.Base,
			c.ActiveMarker)
	}
	if n.Base != "" {
		base, err := marker(ctx, tx, c.cid, n.Base)
		if err != nil {
			return n, err
		}
		if n.CoversFrom == 0 && n.CoversTo == 0 {
			n.CoversFrom, n.CoversTo = base.CoversFrom, base.CoversTo
			if n.CoveredChain.IsZero() {
				n.CoveredChain = base.CoveredChain
			}
		}
		// A digest is replaced from the messages themselves, and may cover more than what replaces it.
		if n.CoversTo < base.CoversTo && !base.Digest {
			return n, invalidf("it covers up to %d, and its base up to %d: what lies between would be told twice",
				n.CoversTo, base.CoversTo)
		}
	}
	if n.CoversTo == 0 {
		if n.Valve == pipeline.TailValveNone || n.Summary != "" || n.CoversFrom != 0 || n.CoveredMessages != 0 ||
			len(n.Carried) > 0 {
			return n, invalidf("a marker that covers nothing has a valve and nothing else")
		}
		n.CoveredChain = Hash{}
		return n, nil
	}
	if n.CoversFrom < 1 || n.CoversTo < n.CoversFrom || n.CoversTo > c.HeadSeq {
		return n, invalidf("it covers %d to %d of a conversation of %d messages", n.CoversFrom, n.CoversTo, c.HeadSeq)
	}
	for _, seq := range n.Carried {
		if seq < 1 || seq > n.CoversTo {
			return n, invalidf("carried message %d is not among the covered ones, 1 to %d", seq, n.CoversTo)
		}
	}
	chain, err := chainAt(ctx, tx, c.cid, n.CoversTo)
	if err != nil {
		return n, err
	}
	if chain != n.CoveredChain {
		return n, conflictf(ConflictCoveredChanged, "the messages up to %d are not the ones that were summarised",
			n.CoversTo)
	}
	return n, nil
}

func chainAt(ctx context.Context, q querier, cid, seq int64) (Hash, error) {
	raw, err := one(ctx, q, pgx.RowTo[[]byte], `SELECT chain FROM messages WHERE cid = $1 AND seq = $2`, cid, seq)
	if err != nil {
		return Hash{}, fmt.Errorf("message %d: %w", seq, err)
	}
	return Hash(raw), nil
}

// insertMarker writes a marker; an applied one becomes the active marker.
func insertMarker(ctx context.Context, tx pgx.Tx, c Conversation, m Marker) (Marker, error) {
	sum, err := optionalHash(m.Summary)
	if err != nil {
		return m, err
	}
	if err := linkedArtifact(ctx, tx, c, m.Summary); err != nil {
		return m, err
	}
	if err := linkedNative(ctx, tx, c, m.NewMarker); err != nil {
		return m, err
	}
	native, err := optionalHash(m.Native)
	if err != nil {
		return m, err
	}
	var base, run *string
	if m.Base != "" {
		base = &m.Base
	}
	if m.Run != "" {
		run = &m.Run
	}
	if m.Carried == nil {
		m.Carried = []int64{}
	}
	epoch := c.Epoch + 1
	m, err = one(ctx, tx, scanMarker, `INSERT INTO markers AS m (id, cid, tenant, base, run, status, origin, covers_from, covers_to,
			covered_messages, covered_chain, carried, summary_sha256, summary_tokens, digest, valve, valve_up_to, tokens_before,
			tokens_after, epoch, applied_at, calibration, draft, native_sha256, native)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19,
			CASE WHEN $6 = 'applied' THEN $20::bigint END, CASE WHEN $6 = 'applied' THEN clock_timestamp() END, $21, $22, $23, $24)
		RETURNING `+markerColumns,
		m.ID, c.cid, c.Ref.Tenant, base, run, string(m.Status), string(m.Origin), m.CoversFrom, m.CoversTo,
		m.CoveredMessages, m.CoveredChain[:], m.Carried, sum, m.SummaryTokens, m.Digest, string(m.Valve), m.ValveUpTo,
		m.TokensBefore,
		m.TokensAfter, epoch, m.Calibration, []byte(m.Draft), native, []byte(m.NativeUse))
	if err != nil {
		return m, err
	}
	if m.Status == MarkerApplied {
		err = activate(ctx, tx, c.cid, m.ID, m.Calibration)
	}
	return m, err
}

// linkedArtifact makes sure that a summary is this conversation's, and keeps it from being pruned before a marker
// refers to it; "" for none.
func linkedArtifact(ctx context.Context, tx pgx.Tx, c Conversation, sha string) error {
	sum, err := optionalHash(sha)
	if err != nil || sum == nil {
		return err
	}
	_, err = one(ctx, tx, pgx.RowTo[string], `SELECT a.kind FROM artifacts a JOIN artifact_links l USING (tenant, sha256)
		WHERE l.cid = $1 AND a.tenant = $2 AND a.sha256 = $3 FOR KEY SHARE OF a`, c.cid, c.Ref.Tenant, sum)
	if err != nil {
		return fmt.Errorf("artifact %s of this conversation: %w", sha, err)
	}
	return nil
}

// activate sets the active marker, "" for none: the context is another from now on. calibration is the last known
// before the server's figure becomes stale by it, 0: not known.
func activate(ctx context.Context, tx pgx.Tx, cid int64, id string, calibration float64) error {
	_, err := tx.Exec(ctx, `UPDATE conversations SET active_marker = nullif($2, ''), epoch = epoch + 1,
		memory_due_at = CASE WHEN ephemeral THEN NULL ELSE clock_timestamp() END,
		calibration = CASE WHEN $3::float8 > 0 THEN $3 ELSE calibration END, updated_at = now() WHERE cid = $1`, cid, id, calibration)
	return err
}

// markerEvent is what the timeline says of a marker.
func markerEvent(m Marker) json.RawMessage {
	data, err := json.Marshal(map[string]any{
		"marker": m.ID, "origin": m.Origin, "covers_from": m.CoversFrom, "covers_to": m.CoversTo,
		"messages": m.CoveredMessages, "tokens_before": m.TokensBefore, "tokens_after": m.TokensAfter,
		"digest": m.Digest,
	})
	if err != nil {
		panic(err) // strings, numbers and a bool: it cannot fail
	}
	return data
}

// discardPrepared gives up the prepared marker, if there is one that is not except.
func discardPrepared(ctx context.Context, tx pgx.Tx, cid int64, except, why string) error {
	m, err := one(ctx, tx, scanMarker, `UPDATE markers m SET status = 'discarded', reason = $3, ended_at = clock_timestamp()
		WHERE cid = $1 AND status = 'prepared' AND id <> $2 RETURNING `+markerColumns, cid, except, why)
	if isNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if m.Run != "" {
		if _, err := tx.Exec(ctx, `UPDATE runs SET outcome = 'superseded', reason = $2 WHERE id = $1`, m.Run,
			why); err != nil {
			return err
		}
	}
	data, err := json.Marshal(map[string]any{"marker": m.ID, "reason": why})
	if err != nil {
		return err
	}
	if _, err = appendEvent(ctx, tx, cid, Event{Kind: EventDiscarded, Run: m.Run, Data: data}); err != nil {
		return err
	}
	return sealMarker(ctx, tx, cid, m)
}

// Application is what a prepared marker takes effect with, in place of what it was prepared with. Zero fields stay.
type Application struct {
	// Summary is the artifact that holds the summary's text as it is to be read now.
	Summary                   string
	SummaryTokens             int
	TokensBefore, TokensAfter int
	// Numbers is added to the run's, a JSON object.
	Numbers json.RawMessage
	// Context is the artifact with the context as it is written now.
	Context string
}

// ApplyPrepared makes a prepared marker take effect, under the checks of ApplyMarker; its run's outcome becomes
// applied. Called again it gives the same marker, and already is true. One that was discarded or undone is
// ConflictNotPrepared.
func (s *Store) ApplyPrepared(ctx context.Context, ref ConversationRef, id string,
	a Application,
) (m Marker, already bool, err error) {
	numbers, err := cleanJSON(a.Numbers)
	if err != nil {
		return m, false, fmt.Errorf("store: apply a prepared marker: numbers: %w", err)
	}
	err = s.write(ctx, "apply a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if m, err = marker(ctx, tx, c.cid, id); err != nil {
			return err
		}
		if already = m.Status == MarkerApplied; already {
			return nil
		}
		if m.Status != MarkerPrepared {
			return conflictf(ConflictNotPrepared, "marker %s is %s: %s", id, m.Status, m.Reason)
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		if err := noReplyOpen(ctx, tx, c.cid); err != nil {
			return err
		}
		if _, err := checkMarker(ctx, tx, c, m.NewMarker); err != nil {
			return err
		}
		for _, sha := range []string{a.Summary, a.Context} {
			if err := linkedArtifact(ctx, tx, c, sha); err != nil {
				return err
			}
		}
		sum, err := optionalHash(a.Summary)
		if err != nil {
			return err
		}
		written, err := optionalHash(a.Context)
		if err != nil {
			return err
		}
		m, err = one(ctx, tx, scanMarker, `UPDATE markers m SET status = 'applied', applied_at = clock_timestamp(), epoch = $2,
				tokens_before = coalesce(nullif($3::bigint, 0), tokens_before), tokens_after = coalesce(nullif($4::bigint, 0), tokens_after),
				summary_sha256 = coalesce($5, summary_sha256), summary_tokens = coalesce(nullif($6::bigint, 0), summary_tokens)
			WHERE id = $1 RETURNING `+markerColumns, id, c.Epoch+1, a.TokensBefore, a.TokensAfter, sum, a.SummaryTokens)
		if err != nil {
			return err
		}
		if err := activate(ctx, tx, c.cid, id, 0); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE runs SET outcome = 'applied', tokens_before = $2, tokens_after = $3, numbers = numbers || $4::jsonb,
				context_sha256 = coalesce($5, context_sha256) WHERE id = $1`,
			m.Run, m.TokensBefore, m.TokensAfter, numbers, written)
		if err != nil {
			return err
		}
		if _, err = appendEvent(ctx, tx, c.cid,
			Event{Kind: EventApplied, Run: m.Run, Data: markerEvent(m)}); err != nil {
			return err
		}
		return sealMarker(ctx, tx, c.cid, m)
	})
	return m, already, err
}

// sealMarker seals a marker that has changed, and its run with it.
func sealMarker(ctx context.Context, tx pgx.Tx, cid int64, m Marker) error {
	if m.Run == "" {
		return seal(ctx, tx, cid, ofMarker(m.ID))
	}
	return seal(ctx, tx, cid, ofMarker(m.ID), ofRun(m.Run))
}

// DiscardPrepared gives up a conversation's prepared marker and says why; its run becomes superseded. With none
// prepared it does nothing.
func (s *Store) DiscardPrepared(ctx context.Context, ref ConversationRef, why string) error {
	return s.write(ctx, "discard a prepared marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		return discardPrepared(ctx, tx, c.cid, "", cleanText(why))
	})
}

// Undone is what an undo did.
type Undone struct {
	// Marker is the one that was undone, Active the one that counts now: nil for the full history.
	Marker Marker
	Active *Marker
}

// Undo takes the newest marker back: the context is what it was before, and what came since. No automatic run starts
// until the next user message. ifMarker, when not "", is the marker that the caller means to undo: another one active
// is ConflictBaseChanged, so that a repeated call does not undo twice. With no marker active: ErrNothingToUndo.
func (s *Store) Undo(ctx context.Context, ref ConversationRef, ifMarker string) (Undone, error) {
	var u Undone
	err := s.write(ctx, "undo", func(ctx context.Context, tx pgx.Tx) error {
		u = Undone{}
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		if ifMarker != "" && ifMarker != c.ActiveMarker {
			return conflictf(ConflictBaseChanged, "active is marker %q, not %q", c.ActiveMarker, ifMarker)
		}
		if c.ActiveMarker == "" {
			return ErrNothingToUndo
		}
		u.Marker, err = one(ctx, tx, scanMarker, `UPDATE markers m SET status = 'undone', ended_at = clock_timestamp()
			WHERE id = $1 RETURNING `+markerColumns, c.ActiveMarker)
		if err != nil {
			return err
		}
		if u.Marker.Base != "" {
			base, err := marker(ctx, tx, c.cid, u.Marker.Base)
			if err != nil {
				return err
			}
			u.Active = &base
		}
		if err := activate(ctx, tx, c.cid, u.Marker.Base, 0); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE conversations SET auto_hold_turns = turns_sum WHERE cid = $1`,
			c.cid); err != nil {
			return err
		}
		if err := discardPrepared(ctx, tx, c.cid, "", "an undo came after it"); err != nil {
			return err
		}
		if _, err = appendEvent(ctx, tx, c.cid,
			Event{Kind: EventUndone, Run: u.Marker.Run, Data: markerEvent(u.Marker)}); err != nil {
			return err
		}
		return seal(ctx, tx, c.cid, ofMarker(u.Marker.ID))
	})
	return u, err
}

// ReportedMarker is a compaction that somebody else did.
type ReportedMarker struct {
	// Origin is OriginAgent or OriginImported.
	Origin MarkerOrigin
	// CoversTo is the last message that the summary stands for. What the active marker covers is covered too.
	CoversTo int64
	// Carried are the messages up to CoversTo that stay verbatim all the same.
	Carried []int64
	// Summary is the text, any bytes; SummaryTokens the estimate of its message.
	Summary                   []byte
	SummaryTokens             int
	TokensBefore, TokensAfter int
	// Digest says that the text stands in for a summary that only its vendor can read: a run may replace it by one
	// of the untouched messages.
	Digest bool
}

// ReportMarker applies a compaction that an agent's runtime did, or that an imported file records. The caller vouches
// that the source is to be trusted: a forged one would hide the history. Reporting the one that is active again
// changes nothing. Replies do not stand in its way: it is the agent's own.
func (s *Store) ReportMarker(ctx context.Context, ref ConversationRef, n ReportedMarker) (Marker, error) {
	var m Marker
	if n.Origin != OriginAgent && n.Origin != OriginImported {
		return m, fmt.Errorf("store: report a marker: %w", invalidf("origin %q: it is agent or imported", n.Origin))
	}
	id, p := newID(), s.pack(n.Summary)
	err := s.write(ctx, "report a marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := lockConversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return ErrContentDeleted
		}
		from := int64(1)
		if c.ActiveMarker != "" {
			base, err := marker(ctx, tx, c.cid, c.ActiveMarker)
			if err != nil {
				return err
			}
			if base.Origin == n.Origin && base.CoversTo == n.CoversTo && base.Summary == p.sum.String() {
				m = base
				return nil
			}
			from = min(base.CoversTo+1, n.CoversTo)
		}
		if n.CoversTo < 1 || n.CoversTo > c.HeadSeq {
			return invalidf("it covers up to %d of a conversation of %d messages", n.CoversTo, c.HeadSeq)
		}
		chain, err := chainAt(ctx, tx, c.cid, n.CoversTo)
		if err != nil {
			return err
		}
		marker, err := checkMarker(ctx, tx, c, NewMarker{
			Base: c.ActiveMarker, CoversFrom: from, CoversTo: n.CoversTo, CoveredMessages: int(n.CoversTo - from + 1),
			CoveredChain: chain, Carried: n.Carried, Summary: p.sum.String(), SummaryTokens: n.SummaryTokens,
			TokensBefore: n.TokensBefore, TokensAfter: n.TokensAfter, Digest: n.Digest,
		})
		if err != nil {
			return err
		}
		if _, err := putArtifact(ctx, tx, c.cid, ref.Tenant, "summary", p); err != nil {
			return err
		}
		if err := discardPrepared(ctx, tx, c.cid, "",
			"another compaction of the conversation came after it"); err != nil {
			return err
		}
		m, err = insertMarker(ctx, tx, c, Marker{ID: id, NewMarker: marker, Status: MarkerApplied, Origin: n.Origin})
		if err != nil {
			return err
		}
		if _, err = appendEvent(ctx, tx, c.cid, Event{Kind: EventApplied, Data: markerEvent(m)}); err != nil {
			return err
		}
		return seal(ctx, tx, c.cid, ofMarker(m.ID))
	})
	return m, err
}
