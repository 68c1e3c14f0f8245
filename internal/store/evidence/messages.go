package evidence

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/pipeline"
)

// verifyPage is how many rows are read at once.
const verifyPage = 1000

// verifiedMessage is a message's row without its content.
type verifiedMessage struct {
	seq      int64
	role     pipeline.Role
	kind     pipeline.Kind
	clientID string
	// record is read from the row's columns, stored is the hash that was written with them.
	record conversations.Record
	stored []byte
	// native is the SHA-256 of the stored content.
	native      db.Hash
	nativeBytes int64
	pruned      *time.Time
}

func scanVerified(row pgx.CollectableRow) (m verifiedMessage, err error) {
	r := &m.record
	var chain, native []byte
	err = row.Scan(&m.seq, &m.role, &m.kind, &m.clientID, &chain, &native, &m.nativeBytes, &r.Sums.Tokens,
		&r.Sums.Chars, &r.Sums.Turns, &r.Chars, &r.Tokens, &r.Bytes, &r.Genuine, &r.Created, &r.SyncChain, &m.stored,
		&m.pruned)
	r.Chain, m.native = db.ToHash(chain), db.ToHash(native)
	return m, err
}

// Messages recomputes the chain over all messages and compares the other columns of each row. It returns the chain at
// the wanted messages. The database hashes the content, so that it is not transferred.
func (v *Verification) Messages(ctx context.Context,
	wanted ...int64,
) (f Findings, chains map[int64]db.Hash, err error) {
	chains = map[int64]db.Hash{0: {}}
	c := v.Conversation
	if !c.ContentDeleted.IsZero() {
		f.add(Pruned, "messages", c.Ref.ID, "", "the conversation's content was removed on %s",
			c.ContentDeleted.UTC().Format(time.DateOnly))
		return f, chains, v.tombstone(ctx, &f)
	}
	pruned, err := v.prunings(ctx)
	if err != nil {
		return f, nil, err
	}
	last := verifiedMessage{}
	for {
		page, err := db.All(ctx, v.tx, scanVerified, `SELECT seq, role, kind, coalesce(client_id, ''), chain,
			sha256(native),
				octet_length(native), tokens_sum, chars_sum, turns_sum, chars, tokens, bytes, genuine, created_at,
				sync_chain, record, pruned_at
			FROM messages WHERE cid = $1 AND seq > $2 ORDER BY seq LIMIT $3`, c.CID, last.seq, verifyPage)
		if err != nil {
			return f, nil, err
		}
		for _, m := range page {
			v.message(&f, pruned, last, m)
			if slices.Contains(wanted, m.seq) {
				chains[m.seq] = m.record.Chain
			}
			last = m
		}
		if len(page) < verifyPage {
			break
		}
	}
	v.head(&f, last)
	return f, chains, nil
}

func (v *Verification) message(f *Findings, pruned *prunedSet, last, m verifiedMessage) {
	f.Checked++
	key := fmt.Sprint(m.seq)
	if m.seq != last.seq+1 {
		missing := fmt.Sprintf("%d to %d", last.seq+1, m.seq-1)
		if last.seq+1 == m.seq-1 {
			missing = fmt.Sprint(m.seq - 1)
		}
		f.add(Missing, "messages", missing, "", "message %s is missing", missing)
		return // what follows a gap cannot be computed; the next one is again
	}
	native, bytes := m.native, m.nativeBytes
	if p, ok := pruned.messages[m.seq]; ok && (m.pruned != nil || m.native == p.Placeholder) {
		if m.native != p.Placeholder {
			f.add(Tampered, "messages", key, "native", "the placeholder is not the one that its pruning wrote")
		}
		if !p.at.IsZero() && (m.pruned == nil || !m.pruned.Equal(p.at)) {
			f.add(Tampered, "messages", key, "pruned_at", "it is not when its pruning was, on %s",
				v.day(p.at, nil))
		}
		native, bytes = p.Native, p.Bytes
		f.add(Pruned, "messages", key, "native", "its content was pruned on %s", v.day(p.at, m.pruned))
	} else if m.pruned != nil {
		f.add(Tampered, "messages", key, "pruned_at", "it says that it was pruned, and no pruning is on record")
	}
	before, chain := last.record.Chain, m.record.Chain
	if conversations.ChainOver(before, m.seq, m.role, m.kind, m.clientID, native) != chain {
		f.add(Tampered, "messages", key, m.chainSuspect(before, native),
			"its content, role, kind or client id is not what its hash commits to")
	}
	if suspect := m.recordSuspect(m.record, last.record.Sums, bytes); suspect != "" {
		f.add(Tampered, "messages", key, suspect,
			"its sizes or times are not what its record commits to")
	}
}

// chainSuspect returns the column under a message's chain that was changed. It finds out by trying all roles and kinds.
func (m verifiedMessage) chainSuspect(before, native db.Hash) string {
	is := func(role pipeline.Role, kind pipeline.Kind, clientID string) bool {
		return conversations.ChainOver(before, m.seq, role, kind, clientID, native) == m.record.Chain
	}
	for _, role := range []pipeline.Role{
		pipeline.RoleSystem, pipeline.RoleUser, pipeline.RoleAssistant,
		pipeline.RoleTool,
	} {
		if is(role, m.kind, m.clientID) {
			return "role"
		}
	}
	for _, kind := range []pipeline.Kind{
		pipeline.KindOrdinary, pipeline.KindSummary, pipeline.KindUserInfo,
		pipeline.KindReminder, pipeline.KindSynthetic,
	} {
		if is(m.role, kind, m.clientID) {
			return "kind"
		}
	}
	if is(m.role, m.kind, "") {
		return "client_id"
	}
	if !m.record.Fits(m.stored) {
		return "chain" // its own record does not know it either
	}
	return "native, kind or client_id"
}

// recordSuspect returns the column under a message's record that was changed, "" if none was.
func (m verifiedMessage) recordSuspect(r conversations.Record, before conversations.Sums, bytes int64) string {
	turns := int64(0)
	if r.Genuine {
		turns = 1
	}
	fits := func(r conversations.Record) bool { return r.Fits(m.stored) }
	consistent := r.Sums == conversations.Sums{
		Tokens: before.Tokens + r.Tokens, Chars: before.Chars + r.Chars,
		Turns: before.Turns + turns,
	} && r.Bytes == bytes
	if fits(r) && consistent {
		return ""
	}
	for _, try := range []struct {
		column string
		change func(*conversations.Record)
	}{
		{"genuine", func(r *conversations.Record) { r.Genuine = !r.Genuine }},
		{"tokens", func(r *conversations.Record) { r.Tokens = r.Sums.Tokens - before.Tokens }},
		{"tokens_sum", func(r *conversations.Record) { r.Sums.Tokens = before.Tokens + r.Tokens }},
		{"chars", func(r *conversations.Record) { r.Chars = r.Sums.Chars - before.Chars }},
		{"chars_sum", func(r *conversations.Record) { r.Sums.Chars = before.Chars + r.Chars }},
		{"turns_sum", func(r *conversations.Record) { r.Sums.Turns = before.Turns + turns }},
		{"bytes", func(r *conversations.Record) { r.Bytes = bytes }},
	} {
		changed := r
		try.change(&changed)
		if fits(changed) {
			return try.column
		}
	}
	if len(m.stored) == 0 {
		return "record"
	}
	if chain := r.Chain; fits(r) && !chain.IsZero() {
		return "tokens_sum, chars_sum, turns_sum or bytes"
	}
	return "created_at, sync_chain or record"
}

// head compares the conversation's row with its last message.
func (v *Verification) head(f *Findings, last verifiedMessage) {
	c := v.Conversation
	key := c.Ref.ID
	switch {
	case last.seq < c.HeadSeq:
		f.add(Missing, "messages", fmt.Sprintf("%d to %d", last.seq+1, c.HeadSeq), "",
			"conversations.head_seq says %d, and the last message that is there is %d", c.HeadSeq, last.seq)
		return
	case last.seq > c.HeadSeq:
		f.add(Tampered, "conversations", key, "head_seq",
			"the conversation's head is message %d, and there is a message %d", c.HeadSeq, last.seq)
		return
	}
	if last.record.Chain != c.HeadChain {
		f.add(Tampered, "conversations", key, "head_chain", "the head's hash is not that of message %d", last.seq)
	}
	for _, sum := range []struct {
		column     string
		have, want int64
	}{
		{"tokens_sum", c.Sums.Tokens, last.record.Sums.Tokens},
		{"chars_sum", c.Sums.Chars, last.record.Sums.Chars},
		{"turns_sum", c.Sums.Turns, last.record.Sums.Turns},
	} {
		if sum.have != sum.want {
			f.add(Tampered, "conversations", key, sum.column, "it is %d, and the messages come to %d", sum.have,
				sum.want)
		}
	}
}
