package llm

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
)

// addTo adds the metadata as headers. Every request has them, even where the vendor has a field in its body, because a
// gateway does not read the body.
func (m Metadata) addTo(h http.Header) {
	h.Set("X-Precis-Inference-Reason", m.reason())
	for k, v := range map[string]string{
		"X-Precis-Feature": m.Feature, "X-Precis-Run": m.RunID,
		"X-Precis-Tenant": m.Tenant,
	} {
		if v != "" {
			h.Set(k, headerValue(v))
		}
	}
}

func (m Metadata) reason() string {
	if m.Reason == "" {
		return ReasonSummarization
	}
	return headerValue(m.Reason)
}

// headerValue makes any string a valid header value: bytes that are not visible ASCII become "_".
func headerValue(s string) string {
	if len(s) > 256 {
		s = s[:256]
	}
	b := []byte(s)
	for i, c := range b {
		if c <= ' ' || c > '~' {
			b[i] = '_'
		}
	}
	return string(b)
}

// opaqueID identifies a tenant to a vendor, which has to distinguish users and must not learn who they are.
func opaqueID(tenant string) string {
	sum := sha256.Sum256([]byte("precis tenant\x00" + tenant))
	return hex.EncodeToString(sum[:16])
}
