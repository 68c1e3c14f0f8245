package api

import (
	"fmt"

	"precis/internal/service"
	"precis/internal/store/access"
)

// scopes says for each operation that needs an API key, by its id, what scope the key must have. An operation that is
// missing here needs access.ScopeAdmin; a test refuses it.
var scopes = map[string]access.Scope{
	"list-conversations":  access.ScopeRead,
	"get-conversation":    access.ScopeRead,
	"list-messages":       access.ScopeRead,
	"get-context":         access.ScopeRead,
	"list-compactions":    access.ScopeRead,
	"list-state":          access.ScopeRead,
	"get-state":           access.ScopeRead,
	"list-segments":       access.ScopeRead,
	"get-segment":         access.ScopeRead,
	"search":              access.ScopeRead,
	"follow-events":       access.ScopeRead,
	"list-runs":           access.ScopeRead,
	"sum-runs":            access.ScopeRead,
	"get-run":             access.ScopeRead,
	"verify-run":          access.ScopeRead,
	"export-conversation": access.ScopeRead,
	"get-usage":           access.ScopeRead,
	"get-settings":        access.ScopeRead,

	"create-conversation": access.ScopeWrite,
	"patch-conversation":  access.ScopeWrite,
	"append-messages":     access.ScopeWrite,
	"sync-messages":       access.ScopeWrite,
	"open-reply":          access.ScopeWrite,
	"end-reply":           access.ScopeWrite,
	"compact":             access.ScopeWrite,
	"compact-once":        access.ScopeWrite,
	"undo":                access.ScopeWrite,
	"put-state":           access.ScopeWrite,
	"delete-state":        access.ScopeWrite,
	"add-note":            access.ScopeWrite,
	"cancel-run":          access.ScopeWrite,
	"replay-run":          access.ScopeWrite,
	"put-settings":        access.ScopeWrite,
	"patch-settings":      access.ScopeWrite,

	"report-marker": access.ScopeAdmin,
}

func scopeOf(operation string) access.Scope {
	if scope, ok := scopes[operation]; ok {
		return scope
	}
	return access.ScopeAdmin
}

// allowed returns the problem of a key whose scope is not enough, nil if it is.
func (q *request) allowed(needed access.Scope) *Problem {
	if q.scope.Includes(needed) {
		return nil
	}
	return problem(service.CodeForbidden, "the API key has the scope %q, and this needs %q: use another key, or make "+
		"one with `precis keys create --scope %s`", q.scope, needed, needed).at("header.Authorization")
}

// aboutScope is what the document says of the scope that an operation needs.
func aboutScope(scope access.Scope) string {
	return fmt.Sprintf("Needs an API key with the scope `%s`.", scope)
}
