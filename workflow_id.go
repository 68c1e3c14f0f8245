package precis

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
)

// maxWorkflowID bounds the ids of workflows, in bytes: sample configurations of Temporal allow 255 of its 1000.
const maxWorkflowID = 255

// WorkflowID joins kind, tenant and name to the id of a workflow. Temporal's clients send the id as a header of gRPC,
// which holds printable ASCII alone, and servers bound its length. So the id is one of three, by its first segment:
//
//   - "kind/tenant/name", if these are printable ASCII, the tenant has no slash and the whole is short enough;
//   - "kind:encoded/tenant/name" with percent-encoded tenant and name otherwise;
//   - "kind:hashed/…/HASH", the SHA-256 of the encoded id after its first chars, if that would be too long.
//
// Different names never get the same id. A kind has neither colon nor slash.
func WorkflowID(kind, tenant, name string) string {
	plain := kind + "/" + tenant + "/" + name
	if printableASCII(plain) && !strings.Contains(tenant, "/") && len(plain) <= maxWorkflowID {
		return plain
	}
	encoded := kind + ":encoded/" + url.PathEscape(tenant) + "/" + url.PathEscape(name)
	if len(encoded) <= maxWorkflowID {
		return encoded
	}
	sum := sha256.Sum256([]byte(encoded))
	hash := "/" + hex.EncodeToString(sum[:])
	readable := strings.Replace(encoded, ":encoded/", ":hashed/", 1)
	return readable[:maxWorkflowID-len(hash)] + hash
}

func printableASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) < 0
}
