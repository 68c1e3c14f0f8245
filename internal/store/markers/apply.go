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

// Apply applies a run's compaction in one transaction: it writes the marker, makes it the active one, ends the run and
// appends the event. It checks that no reply is being generated, that the covered messages are the ones that were
// summarized, and that the base is still the active marker. If not, nothing changes and a *ConflictError has the
// reason. Called again for the same run, it returns the first result, even if that was undone since. A prepared marker
// of another run is discarded.
func (s *Store) Apply(ctx context.Context, ref db.RunRef, n NewMarker, facts runs.Facts) (Marker, error) {
	return s.markRun(ctx, "apply a marker", ref, n, facts, runs.MarkerApplied)
}

// Prepare writes a run's compaction as a prepared marker for ApplyPrepared, and ends the run as prepared. It makes the
// checks of Apply except for open replies, and discards an earlier prepared marker. If the run was not requested to
// prepare only, and the reply that prevented Apply has ended since, the marker is applied.
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
		// Read again under the lock, to see what an earlier attempt did.
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
