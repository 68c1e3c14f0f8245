package config

import (
	"crypto/ed25519"
	"crypto/x509"
	encoding "encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Audit says how records are signed. Both keys are Ed25519, each a file or PEM text.
type Audit struct {
	// SigningKey is the private key (PKCS #8) that signs seals and published heads; "": they are not signed.
	SigningKey string `json:"signing_key"`
	// VerifyKey is the public key (PKIX) that signatures are verified with; "": that of SigningKey.
	VerifyKey string `json:"verify_key"`
}

// Signer returns the private key, nil if none is configured.
func (a Audit) Signer() (ed25519.PrivateKey, error) {
	if a.SigningKey == "" {
		return nil, nil
	}
	der, err := pemBlock(a.SigningKey)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, errors.New("it is not a private key in PKCS #8: make one with " +
			"`openssl genpkey -algorithm ed25519`")
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("it is a %T: it must be an Ed25519 key", parsed)
	}
	return key, nil
}

// Verifier returns the public key, nil if no key is configured.
func (a Audit) Verifier() (ed25519.PublicKey, error) {
	if a.VerifyKey == "" {
		key, err := a.Signer()
		if key == nil || err != nil {
			return nil, err
		}
		public, _ := key.Public().(ed25519.PublicKey)
		return public, nil
	}
	der, err := pemBlock(a.VerifyKey)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("it is not a public key: make it with `openssl pkey -pubout`")
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("it is a %T: it must be an Ed25519 key", parsed)
	}
	return key, nil
}

// Keys returns both keys, each nil if there is none.
func (a Audit) Keys() (ed25519.PrivateKey, ed25519.PublicKey, error) {
	signer, err := a.Signer()
	if err != nil {
		return nil, nil, fmt.Errorf("audit.signing_key: %w", err)
	}
	verifier, err := a.Verifier()
	if err != nil {
		return nil, nil, fmt.Errorf("audit.verify_key: %w", err)
	}
	return signer, verifier, nil
}

// pemBlock returns the content of the first block of PEM text, or of a file with it.
func pemBlock(value string) ([]byte, error) {
	text := []byte(value)
	if !strings.Contains(value, "-----BEGIN") {
		var err error
		if text, err = os.ReadFile(value); err != nil {
			return nil, fmt.Errorf("it is neither PEM text nor a file that can be read: %w", err)
		}
	}
	block, _ := encoding.Decode(text)
	if block == nil {
		return nil, errors.New("there is no PEM block in it")
	}
	return block.Bytes, nil
}

// keyProblem is what is wrong with a key, "" for one that can be used.
func keyProblem[K any](_ K, err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}
