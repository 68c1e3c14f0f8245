package markers

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"precis"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/replies"
	"precis/internal/store/runs"
	"precis/internal/store/seals"
	"precis/internal/store/timeline"
)

// Apply makes a run's compaction take effect, in one transaction: the marker, the conversation's active marker
// and epoch, the run's end and the event. It checks that no reply is being generated, that the covered messages are the
// ones that were summarized, and that the base is still the active marker; a *ConflictError says what failed, and then
// nothing has changed. Called again for the same run it gives the first result, even when that has been undone since.
// What had been prepared by another run is discarded.
func (s *Store) Apply(ctx context.Context, ref db.RunRef, n NewMarker, facts runs.Facts) (Marker, error) {
	return s.markRun(ctx, "apply a marker", ref, n, facts, runs.MarkerApplied)
}

// Prepare parks a run's compaction for ApplyPrepared. It checks the same, but for open replies, and ends the
// run as prepared. A summary that was prepared before is discarded. The marker of a run that is to take effect, and
// was only kept from it by a reply, is applied when that reply has ended meanwhile.
func (s *Store) Prepare(ctx context.Context, ref db.RunRef, n NewMarker, facts runs.Facts) (Marker, error) {
	return s.markRun(ctx, "prepare a marker", ref, n, facts, runs.MarkerPrepared)
}

func (s *Store) markRun(ctx context.Context, what string, ref db.RunRef, n NewMarker, facts runs.Facts,
	wanted runs.MarkerStatus,
) (Marker, error) {
	var m Marker
	id := db.NewID()
	err := s.db.Write(ctx, what, func(ctx context.Context, tx pgx.Tx) error {
		status := wanted
		r, err := runs.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		c, err := conversations.Lock(ctx, tx, db.ConversationRef{Tenant: ref.Tenant, ID: r.Conversation})
		if err != nil {
			return err
		}
		// Under the lock: what an earlier attempt did is visible now.
		if r, err = runs.Find(ctx, tx, ref); err != nil {
			return err
		}
		if r.Marker != "" {
			m, err = Find(ctx, tx, c.CID, r.Marker)
			return err
		}
		if r.Outcome != "" {
			return db.Conflictf(db.ConflictRunFinished, "run %s has ended %s", ref.ID, r.Outcome)
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		switch err := replies.NoneOpen(ctx, tx, c.CID); {
		case err == nil && !r.Prepare:
			status = runs.MarkerApplied
		case status == runs.MarkerApplied && err != nil, err != nil && !errors.Is(err, db.ErrReplyOpen):
			return err
		}
		n, err := checkMarker(ctx, tx, c, n)
		if err != nil {
			return err
		}
		if err := discardPrepared(ctx, tx, c.CID, "",
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
		outcome, kind := precis.OutcomeApplied, timeline.Applied
		if status == runs.MarkerPrepared {
			outcome, kind = precis.OutcomePrepared, timeline.Prepared
		}
		_, err = runs.FinishLocked(ctx, tx, r,
			runs.End{Outcome: outcome, Facts: facts, Event: &timeline.Event{Kind: kind, Data: markerEvent(m)}},
			seals.OfMarker(m.ID))
		return err
	})
	return m, err
}
