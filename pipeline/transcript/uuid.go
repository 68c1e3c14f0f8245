package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// madeUUID names a record after what is in it, so that the same record has the same name at every run.
func madeUUID(of ...string) string {
	h := sha256.New()
	for _, s := range of {
		fmt.Fprintf(h, "%d:%s,", len(s), s)
	}
	b := h.Sum(nil)[:16]
	b[6] = b[6]&0x0f | 0x80 // version 8, RFC 9562: made by a rule of one's own
	b[8] = b[8]&0x3f | 0x80
	x := hex.EncodeToString(b)
	return x[:8] + "-" + x[8:12] + "-" + x[12:16] + "-" + x[16:20] + "-" + x[20:]
}
