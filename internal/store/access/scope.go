package access

import (
	"fmt"
	"slices"
	"strings"
)

// Scope is what an API key may do. Each scope includes the ones before it.
type Scope string

// The scopes.
const (
	// ScopeRead reads everything of the tenant and changes nothing.
	ScopeRead Scope = "read"
	// ScopeWrite also creates, appends, compacts, changes and deletes. It is that of keys created without a scope.
	ScopeWrite Scope = "write"
	// ScopeAdmin also does what other keys of the tenant have to trust: it reports compactions that the agent's own
	// runtime did, and raises the tenant's budgets.
	ScopeAdmin Scope = "admin"
)

// Scopes lists the scopes, least first.
var Scopes = []Scope{ScopeRead, ScopeWrite, ScopeAdmin}

// Includes reports whether a key with scope s may do what needs the scope other. An unknown scope includes nothing and
// is included by none.
func (s Scope) Includes(other Scope) bool {
	mine, needed := slices.Index(Scopes, s), slices.Index(Scopes, other)
	return needed >= 0 && mine >= needed
}

// ParseScope returns the greatest of the scopes in a list such as "read,write".
func ParseScope(list string) (Scope, error) {
	greatest := -1
	for name := range strings.SplitSeq(list, ",") {
		at := slices.Index(Scopes, Scope(strings.TrimSpace(name)))
		if at < 0 {
			return "", fmt.Errorf("there is no scope %q: there are read, write and admin", strings.TrimSpace(name))
		}
		greatest = max(greatest, at)
	}
	return Scopes[greatest], nil
}
