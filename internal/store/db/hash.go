package db

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// ParseHash parses an artifact's reference. A malformed one is ErrNotFound, since references also come from callers.
func ParseHash(s string) (Hash, error) {
	var h Hash
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(h) {
		return h, NotFoundf("artifact %q", s)
	}
	copy(h[:], raw)
	return h, nil
}

// OptionalHash is ParseHash for a field that may be empty, for which it returns nil.
func OptionalHash(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	h, err := ParseHash(s)
	return h[:], err
}

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// String returns the hash in lower-case hex.
func (h Hash) String() string { return fmt.Sprintf("%x", h[:]) }

// MarshalText returns the hash in hex, and nothing for an unset hash.
func (h Hash) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	return []byte(h.String()), nil
}

// UnmarshalText parses what MarshalText returns.
func (h *Hash) UnmarshalText(text []byte) error {
	*h = Hash{}
	if len(text) == 0 {
		return nil
	}
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*len(h) {
		return Invalidf("%q is not a SHA-256 in hex", text)
	}
	return nil
}

// IsZero reports whether the hash is unset. The chain hash before the first message is unset too.
func (h Hash) IsZero() bool { return h == Hash{} }

// Bytes returns the hash as a column's value, nil for a nil hash.
func (h *Hash) Bytes() []byte {
	if h == nil {
		return nil
	}
	return h[:]
}

// ToHash returns the hash in a column, the zero Hash for NULL.
func ToHash(b []byte) (h Hash) {
	copy(h[:], b)
	return h
}
