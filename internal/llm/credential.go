package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
)

// Credential names what the vendor is called with (address, key and headers), so that failures under one key are not
// those of the next. It is the beginning of a hash, 8 hexadecimal digits: too little to find a key by.
func (v Vendor) Credential() string {
	h := sha256.New()
	write := func(s string) {
		h.Write([]byte(s))
		h.Write([]byte{0})
	}
	write(v.Name)
	write(string(v.Type))
	write(v.BaseURL)
	write(v.APIKey)
	for _, name := range slices.Sorted(maps.Keys(v.Headers)) {
		write(name)
		write(v.Headers[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:4])
}
