package service

import (
	"context"

	"precis/internal/store/access"
)

// WithQuota returns a context whose changes fail with CodeQuota if they take the tenant over its quota. The doors for
// clients, the HTTP API and MCP, call it for each request. The command line does not: it is the operator's.
func (s *Service) WithQuota(ctx context.Context, tenant string) context.Context {
	q := s.Config.Quotas.Of(tenant)
	return access.WithQuota(ctx, tenant, access.Quota{
		Bytes: int64(q.StorageBytes), Conversations: int64(q.Conversations),
	})
}
