package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// madeUUID derives the uuid of a record from its content, so that it is the same in every run.
func madeUUID(of ...string) string {
	h := sha256.New()
	for _, s := range of {
		fmt.Fprintf(h, "%d:%s,", len(s), s)
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80 // version 8 of RFC 9562: a custom rule
	b[8] = b[8]&0x3f | 0x80
	x := hex.EncodeToString(b)
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
