package conversations

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"precis/internal/store/db"
	"precis/pipeline"
)

// Chain returns the chain hash of a message: SHA-256 over the chain of the one before it (zero for the first), its
// sequence number as 8 bytes big-endian, its role, kind and client id each ended by a zero byte, and the SHA-256 of its
// native bytes. A changed, missing or moved message changes every chain after it.
func Chain(before db.Hash, seq int64, role pipeline.Role, kind pipeline.Kind, clientID string, native []byte) db.Hash {
	return ChainOver(before, seq, role, kind, clientID, sha256.Sum256(native))
}

// ChainOver is Chain for native bytes of which only the hash is known, so that pruned messages can still be verified.
func ChainOver(before db.Hash, seq int64, role pipeline.Role, kind pipeline.Kind, clientID string,
	native db.Hash,
) db.Hash {
	h := sha256.New()
	_, _ = h.Write(before[:])
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(seq))
	_, _ = h.Write(n[:])
	for _, s := range [...]string{string(role), string(kind), clientID} {
		_, _ = h.Write([]byte(s))
		_, _ = h.Write([]byte{0})
	}
	_, _ = h.Write(native[:])
	return db.Hash(h.Sum(nil))
}

// Record is what a message's row holds beside what its chain commits to.
type Record struct {
	Chain                db.Hash
	Sums                 Sums
	Chars, Tokens, Bytes int64
	Genuine              bool
	Created              time.Time
	SyncChain            []byte
}

// recordForm is the first byte of what a record's hash is over. It changes with every change of the form.
const recordForm = 2

// Hash returns messages.record as it is written now: SHA-256 over the byte 2, the chain, then as 8 bytes big-endian
// each the sums (tokens, chars, turns), chars, tokens, bytes, 1 if the message is genuine, and microseconds since
// 1970 when it was written, then the sync chain, if there is one.
func (r Record) Hash() db.Hash { return r.hash([]byte{recordForm}, nil) }

// Fits reports whether a stored messages.record commits to r, in the form of this build or of those before it.
func (r Record) Fits(stored []byte) bool {
	is := db.ToHash(stored)
	return len(stored) == len(is) && (is == r.Hash() || is == r.hashForm1())
}

// hashForm1 is the hash of the builds up to migration 13: it had no first byte, and before the sync chain the SHA-256
// of a column that was always empty.
func (r Record) hashForm1() db.Hash {
	empty := sha256.Sum256(nil)
	return r.hash(nil, empty[:])
}

func (r Record) hash(before, beforeSyncChain []byte) db.Hash {
	h := sha256.New()
	_, _ = h.Write(before)
	_, _ = h.Write(r.Chain[:])
	genuine := int64(0)
	if r.Genuine {
		genuine = 1
	}
	var n [8]byte
	for _, v := range [...]int64{
		r.Sums.Tokens, r.Sums.Chars, r.Sums.Turns, r.Chars, r.Tokens, r.Bytes, genuine, r.Created.UnixMicro(),
	} {
		binary.BigEndian.PutUint64(n[:], uint64(v))
		_, _ = h.Write(n[:])
	}
	_, _ = h.Write(beforeSyncChain)
	_, _ = h.Write(r.SyncChain)
	return db.Hash(h.Sum(nil))
}

// NextSyncChain returns the sync chain after one more message, nil if before or the fingerprint is not known.
func NextSyncChain(before *db.Hash, fingerprint db.Hash) *db.Hash {
	if before == nil || fingerprint.IsZero() {
		return nil
	}
	next := SyncChain(*before, fingerprint)
	return &next
}

// SyncChain returns the sync chain of a message: SHA-256 over that of the one before it (zero for the first) and the
// fingerprint of its JSON value. Unlike Chain it can be computed from what a client holds.
func SyncChain(before, fingerprint db.Hash) db.Hash {
	h := sha256.New()
	_, _ = h.Write(before[:])
	_, _ = h.Write(fingerprint[:])
	return db.Hash(h.Sum(nil))
}
