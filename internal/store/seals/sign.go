package seals

import (
	"crypto/ed25519"
	"encoding/binary"
)

// signedPrefix keeps signatures of heads apart from anything else that the key may sign.
const signedPrefix = "precis seal 1\n"

// Sign signs a head: Ed25519 over signedPrefix, the number of the last seal as 8 bytes big-endian, and its chain.
func (h Head) Sign(key ed25519.PrivateKey) []byte { return ed25519.Sign(key, h.signed()) }

// SignedBy reports whether a signature of the head is one of the key.
func (h Head) SignedBy(key ed25519.PublicKey, signature []byte) bool {
	return ed25519.Verify(key, h.signed(), signature)
}

func (h Head) signed() []byte {
	text := binary.BigEndian.AppendUint64([]byte(signedPrefix), uint64(h.Seals))
	return append(text, h.Chain[:]...)
}
