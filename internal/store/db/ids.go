package db

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// GoodID says whether s can be an id: valid UTF-8 of 1 to max bytes without control characters.
func GoodID(s string, max int) bool {
	return s != "" && len(s) <= max && utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// NewID makes an id that sorts by the time at which it was made.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// BatchRef names a batch of replays of a tenant.
type BatchRef struct {
	Tenant string
	ID     string
}

// DefaultTenant owns everything while no API keys are configured.
const DefaultTenant = "default"

// A ConversationRef names a conversation. Every method that takes one finds nothing but that tenant's own:
// another tenant's id is ErrNotFound, like one that does not exist.
type ConversationRef struct {
	Tenant string
	ID     string
}

func (r ConversationRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }

// A RunRef names a run of a tenant.
type RunRef struct {
	Tenant string
	ID     string
}

func (r RunRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }
