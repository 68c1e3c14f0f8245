package service

import (
	"context"
	"time"

	"precis/internal/store/access"
)

// APIKey is an API key of a tenant.
type APIKey struct {
	ID string `json:"id"`
	// Key is the secret, set only when the key was just created.
	Key     string `json:"key,omitempty"`
	Tenant  string `json:"tenant"`
	Name    string `json:"name"`
	Trusted bool   `json:"trusted"`
	// Scope is read, write or admin; each includes the ones before it.
	Scope   access.Scope `json:"scope"`
	Created time.Time    `json:"created"`
	// Expires is when the key stops working; nil means never.
	Expires *time.Time `json:"expires"`
	Revoked *time.Time `json:"revoked"`
	// LastUsed is accurate to a minute; nil means never.
	LastUsed *time.Time `json:"last_used"`
}

func keyOf(k access.APIKey) APIKey {
	return APIKey{
		ID: k.ID, Tenant: k.Tenant, Name: k.Name, Trusted: k.Trusted, Created: k.Created.UTC(),
		Scope: k.Scope, Expires: timeOrNull(k.Expires), Revoked: timeOrNull(k.Revoked),
		LastUsed: timeOrNull(k.LastUsed),
	}
}

// EnsureTenant creates a tenant unless it exists.
func (s *Service) EnsureTenant(ctx context.Context, tenant string) error {
	_, err := s.Store.Tenants.Ensure(ctx, tenant, "")
	return refused(err)
}

// NewKey is an API key to create.
type NewKey = access.NewKey

// The scopes of API keys that are named above the service.
const (
	ScopeWrite = access.ScopeWrite
	ScopeAdmin = access.ScopeAdmin
)

// ParseScope returns the greatest of the scopes in a list such as "read,write".
func ParseScope(list string) (access.Scope, error) { return access.ParseScope(list) }

// CreateKey creates an API key for a tenant that exists. Only the hash of its secret is stored: it cannot be read
// again. The HTTP API does not offer it: keys are made by an operator, who has access to the database.
func (s *Service) CreateKey(ctx context.Context, n NewKey) (APIKey, error) {
	k, secret, err := s.Store.Keys.CreateKey(ctx, n)
	if err != nil {
		return APIKey{}, refused(err)
	}
	out := keyOf(k)
	out.Key = secret
	return out, nil
}

// ListKeys returns the API keys of a tenant, without their secrets.
func (s *Service) ListKeys(ctx context.Context, tenant string) ([]APIKey, error) {
	list, err := s.Store.Keys.List(ctx, tenant)
	if err != nil {
		return nil, refused(err)
	}
	out := make([]APIKey, len(list))
	for i, k := range list {
		out[i] = keyOf(k)
	}
	return out, nil
}

// RevokeKey revokes an API key, at once and for good. The error has CodeNotFound if the tenant has no such key.
func (s *Service) RevokeKey(ctx context.Context, tenant, id string) error {
	return refused(s.Store.Keys.Revoke(ctx, tenant, id))
}
