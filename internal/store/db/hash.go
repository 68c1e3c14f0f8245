package db

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// ParseHash reads a reference. One that cannot be is ErrNotFound: references come from outside too.
func ParseHash(s string) (Hash, error) {
	var h Hash
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(h) {
		return h, NotFoundf("artifact %q", s)
	}
	copy(h[:], raw)
	return h, nil
}

// OptionalHash is parseHash for a field that may be empty: nil.
func OptionalHash(s string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	h, err := ParseHash(s)
	return h[:], err
}

// Hash is a SHA-256.
type Hash [sha256.Size]byte

// String gives the hash in lower-case hex.
func (h Hash) String() string { return fmt.Sprintf("%x", h[:]) }

// MarshalText gives hex, and nothing for a hash that is unset.
func (h Hash) MarshalText() ([]byte, error) {
	if h.IsZero() {
		return nil, nil
	}
	return []byte(h.String()), nil
}

// UnmarshalText reads what MarshalText gives.
func (h *Hash) UnmarshalText(text []byte) error {
	*h = Hash{}
	if len(text) == 0 {
		return nil
	}
	if n, err := hex.Decode(h[:], text[:min(len(text), 2*len(h))]); err != nil || n != len(h) || len(text) != 2*len(h) {
		return Invalidf("%q is no SHA-256 in hex", text)
	}
	return nil
}

// IsZero says whether the hash is unset: as a chain, that of no message.
func (h Hash) IsZero() bool { return h == Hash{} }

// Bytes gives the hash as a column takes it, nil for none.
func (h *Hash) Bytes() []byte {
	if h == nil {
		return nil
	}
	return h[:]
}

func ToHash(b []byte) (h Hash) {
	copy(h[:], b)
	return h
}
