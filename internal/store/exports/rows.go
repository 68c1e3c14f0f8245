package exports

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/artifacts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/seals"
	"precis/internal/store/timeline"
)

func (im *importing) conversation(ctx context.Context, columns map[string]json.RawMessage) error {
	if im.cid != 0 {
		return db.Invalidf("the export has more than one conversation")
	}
	im.from.ID = text(columns["id"])
	im.active = text(columns["active_marker"])
	var err error
	if err = json.Unmarshal(columns["seal_seq"], &im.sealSeq); err != nil {
		return db.Invalidf("seal_seq: %s", err)
	}
	if err = json.Unmarshal(columns["epoch"], &im.epoch); err != nil {
		return db.Invalidf("epoch: %s", err)
	}
	if im.sealChain, err = hashOf(columns["seal_chain"]); err != nil {
		return err
	}
	if im.eventChain, err = hashOf(columns["event_chain"]); err != nil {
		return err
	}
	if im.to.ID == "" {
		// An earlier release may have exported an id that this one refuses.
		im.to.ID = db.CleanID(im.from.ID, conversations.MaxID)
	}
	if problem := db.IDProblem(im.to.ID, conversations.MaxID); problem != "" {
		return db.Invalidf("the conversation's id %q %s", im.to.ID, problem)
	}
	if _, err := db.One(ctx, im.tx, pgx.RowTo[string], `SELECT id FROM tenants WHERE id = $1`,
		im.to.Tenant); err != nil {
		return fmt.Errorf("tenant %q: %w", im.to.Tenant, err)
	}
	switch _, err := conversations.Find(ctx, im.tx, db.ConversationRef(im.to)); {
	case err == nil:
		return db.Conflictf(db.ConflictDifferent, "conversation %q exists already: choose another id", im.to.ID)
	case !db.IsNotFound(err):
		return err
	}
	columns["id"] = quoted(im.to.ID)
	for _, name := range []string{
		"active_marker", "seal_seq", "seal_chain", "event_chain", "search_seq",
		"memory_due_at",
	} {
		delete(columns, name)
	}
	if err := im.insert(ctx, "conversations", columns); err != nil {
		return err
	}
	c, err := conversations.Find(ctx, im.tx, db.ConversationRef(im.to))
	im.cid = c.CID
	return err
}

func (im *importing) artifact(ctx context.Context, columns map[string]json.RawMessage, content []byte) error {
	sum, err := hashOf(columns["sha256"])
	if err != nil {
		return err
	}
	if content == nil && text(columns["pruned_at"]) == "" {
		return db.Invalidf("artifact %s has no content, and was not pruned", sum)
	}
	if content != nil {
		if db.Hash(sha256.Sum256(content)) != sum {
			return db.Invalidf("artifact %s is damaged: its content has another hash", sum)
		}
		columns["data"] = quoted(`\x` + hex.EncodeToString(im.db.Compress(content)))
	}
	there, err := db.One(ctx, im.tx, pgx.RowTo[bool],
		`SELECT EXISTS (SELECT FROM artifacts WHERE tenant = $1 AND sha256 = $2)`, im.to.Tenant, sum[:])
	if err != nil {
		return err
	}
	if !there {
		if err := im.insert(ctx, "artifacts", columns); err != nil {
			return err
		}
	} else if content != nil {
		if _, err := artifacts.Put(ctx, im.tx, im.cid, im.to.Tenant, contract.ArtifactKind(text(columns["kind"])),
			im.db.Pack(content)); err != nil {
			return err
		}
	}
	_, err = im.tx.Exec(
		ctx, `INSERT INTO artifact_links (cid, tenant, sha256) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, im.cid,
		im.to.Tenant, sum[:])
	return err
}

// event writes an event. Its chain differs from the exported one if its run has a new id.
func (im *importing) event(ctx context.Context, columns map[string]json.RawMessage) error {
	row, err := json.Marshal(columns)
	if err != nil {
		return err
	}
	run := text(columns["run"])
	here := run
	if id, ok := im.runs[run]; ok {
		here = id
	}
	var was, computed, next []byte
	expr := func(before, run string) string {
		return timeline.Chain(before, "e.seq", "e.kind", run, "e.data", "e.created_at")
	}
	err = im.tx.QueryRow(ctx, `INSERT INTO events (cid, seq, created_at, kind, run, data, chain)
		SELECT $1, e.seq, e.created_at, e.kind, nullif($3, ''), e.data, `+expr("$4::bytea", "$3::text")+`
			FROM jsonb_populate_record(NULL::events, $2) e
		RETURNING chain, (SELECT e.chain FROM jsonb_populate_record(NULL::events, $2) e),
			(SELECT `+expr("$5::bytea", "$6::text")+` FROM jsonb_populate_record(NULL::events, $2) e)`,
		im.cid, row, here, im.events[:], im.eventsWas(), run).Scan(&next, &was, &computed)
	if err != nil {
		return badRow(err)
	}
	if string(was) != string(computed) {
		return db.Invalidf("the event is not what its hash commits to")
	}
	im.events, im.seenChain = db.ToHash(next), db.ToHash(was)
	return nil
}

func (im *importing) eventsWas() []byte { return im.seenChain[:] }

// seal checks a seal of the export. It is not imported: finish writes new seals with the new ids.
func (im *importing) seal(columns map[string]json.RawMessage) error {
	var s seals.Seal
	err := json.Unmarshal(columns["n"], &s.N)
	s.Kind, s.Subject = seals.Kind(text(columns["kind"])), text(columns["subject"])
	record, hexErr := hex.DecodeString(strings.TrimPrefix(text(columns["record"]), `\x`))
	var sumErr, chainErr error
	s.SHA256, sumErr = hashOf(columns["sha256"])
	s.Chain, chainErr = hashOf(columns["chain"])
	timeErr := json.Unmarshal(columns["created_at"], &s.Created)
	if err := errors.Join(err, hexErr, sumErr, chainErr, timeErr); err != nil {
		return db.Invalidf("the seal cannot be read: %s", err)
	}
	s.Record = record
	if s.N != im.seals.Seals+1 || db.Hash(sha256.Sum256(record)) != s.SHA256 ||
		seals.Chain(im.seals.Chain, s.N, s.Kind, s.Subject, s.SHA256) != s.Chain {
		return db.Invalidf("the seal is not what its chain commits to")
	}
	im.seals = seals.Head{Seals: s.N, Chain: s.Chain}
	var r seals.Record
	if err := json.Unmarshal(record, &r); err != nil {
		return db.Invalidf("the seal's record cannot be read: %s", err)
	}
	if r.Form != seals.Form {
		return db.Invalidf("the seal is %s: %d", seals.ErrForm, r.Form)
	}
	im.last = seals.Record{Epoch: r.Epoch, ActiveMarker: r.ActiveMarker}
	if s.N == 1 && r.Imported != nil {
		im.origin, im.originAt = r.Imported, s.Created
	}
	if s.Kind == seals.Pruning {
		if r.Pruned != nil {
			im.pruned = append(im.pruned, *r.Pruned)
		}
		return nil
	}
	if s.Kind == seals.Conversation && len(r.Rows) > 0 {
		im.from.Tenant = r.Rows[0].Value("tenant")
	}
	im.newest[seals.Subject{Kind: s.Kind, ID: s.Subject}] = s
	return nil
}
