package markers

import (
	"context"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/artifacts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/runs"
	"precis/internal/store/seals"
	"precis/internal/store/timeline"
)

// Reported is a compaction that precis did not make itself.
type Reported struct {
	// Origin is OriginAgent or OriginImported.
	Origin Origin
	// CoversTo is the last message that the summary covers. It also covers what the active marker covers.
	CoversTo int64
	// Carried are the messages up to CoversTo that stay in the context verbatim.
	Carried []int64
	// Summary is the text, any bytes; SummaryTokens the estimate of its message.
	Summary                   []byte
	SummaryTokens             int
	TokensBefore, TokensAfter int
	// Digest is set if the text replaces a summary that only its vendor can read. A run may replace it by a summary of
	// the messages themselves.
	Digest bool
}

// Report applies a compaction that an agent's runtime did, or that an imported file records. The caller must trust the
// source: a forged report would hide the history. Reporting the active marker again changes nothing. An open reply does
// not prevent it, since the agent itself compacted.
func (s *Store) Report(ctx context.Context, ref db.ConversationRef, n Reported) (Marker, error) {
	var m Marker
	if n.Origin != OriginAgent && n.Origin != OriginImported {
		return m, db.Failed("report a marker", db.Invalidf("origin %q: must be agent or imported", n.Origin))
	}
	id, p := db.NewID(), s.db.Pack(n.Summary)
	err := s.db.Write(ctx, "report a marker", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Lock(ctx, tx, ref)
		if err != nil {
			return err
		}
		if !c.ContentDeleted.IsZero() {
			return db.ErrContentDeleted
		}
		from := int64(1)
		if c.ActiveMarker != "" {
			base, err := Find(ctx, tx, c.CID, c.ActiveMarker)
			if err != nil {
				return err
			}
			if base.Origin == n.Origin && base.CoversTo == n.CoversTo && base.Summary == p.Sum.String() {
				m = base
				return nil
			}
			from = min(base.CoversTo+1, n.CoversTo)
		}
		if n.CoversTo < 1 || n.CoversTo > c.HeadSeq {
			return db.Invalidf("the marker covers up to message %d of a conversation of %d messages", n.CoversTo,
				c.HeadSeq)
		}
		chain, err := conversations.ChainAt(ctx, tx, c.CID, n.CoversTo)
		if err != nil {
			return err
		}
		marker, err := checkMarker(ctx, tx, c, NewMarker{
			Base: c.ActiveMarker, CoversFrom: from, CoversTo: n.CoversTo, CoveredMessages: int(n.CoversTo - from + 1),
			CoveredChain: chain, Carried: n.Carried, Summary: p.Sum.String(), SummaryTokens: n.SummaryTokens,
			TokensBefore: n.TokensBefore, TokensAfter: n.TokensAfter, Digest: n.Digest,
		})
		if err != nil {
			return err
		}
		if _, err := artifacts.Put(ctx, tx, c.CID, ref.Tenant, contract.ArtifactSummary, p); err != nil {
			return err
		}
		if err := discardPrepared(ctx, tx, c.CID, "",
			"another compaction of the conversation came after it"); err != nil {
			return err
		}
		m, err = insertMarker(ctx, tx, c,
			Marker{ID: id, NewMarker: marker, Status: runs.MarkerApplied, Origin: n.Origin})
		if err != nil {
			return err
		}
		if _, err = timeline.Append(ctx, tx, c.CID,
			timeline.Event{Kind: timeline.Applied, Data: markerEvent(m)}); err != nil {
			return err
		}
		return seals.Write(ctx, tx, c.CID, seals.OfMarker(m.ID))
	})
	return m, err
}
