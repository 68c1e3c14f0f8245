package db

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// GoodID reports whether s is a valid id: UTF-8 of 1 to max bytes without control characters.
func GoodID(s string, max int) bool {
	return s != "" && len(s) <= max && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// NewID returns a new id. Ids sort by their time of creation.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// BatchRef names a batch of replays of a tenant.
type BatchRef struct {
	Tenant string
	ID     string
}

// DefaultTenant owns everything while no API keys are configured.
const DefaultTenant = "default"

// ConversationRef names a conversation. Methods that take one see only that tenant's rows: another tenant's id is
// ErrNotFound, like one that does not exist.
type ConversationRef struct {
	Tenant string
	ID     string
}

func (r ConversationRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }

// RunRef names a run of a tenant.
type RunRef struct {
	Tenant string
	ID     string
}

func (r RunRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }
