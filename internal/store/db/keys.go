package db

import (
	"context"
	"crypto/ed25519"
)

type signingKey struct{}

// withSigningKey returns a context for a transaction whose seals are signed, unchanged without a key.
func (d *DB) withSigningKey(ctx context.Context) context.Context {
	if d.signingKey == nil {
		return ctx
	}
	return context.WithValue(ctx, signingKey{}, d.signingKey)
}

// SigningKey returns the key with which a transaction signs its seals, nil for none. The context is that of DB.Write.
func SigningKey(ctx context.Context) ed25519.PrivateKey {
	key, _ := ctx.Value(signingKey{}).(ed25519.PrivateKey)
	return key
}

// VerifyKey returns the key that signatures of seals are verified with, nil: they are not verified.
func (d *DB) VerifyKey() ed25519.PublicKey { return d.verifyKey }
