package service

import (
	"context"
	"time"

	"precis/internal/runs"
	"precis/internal/store"
)

// ListRuns gives a tenant's runs, newest first, without their steps.
func (s *Service) ListRuns(ctx context.Context, tenant string, f store.RunFilter) (list []runs.Run, next string, err error) {
	found, next, err := s.Store.ListRuns(ctx, tenant, f)
	if err != nil {
		return nil, "", refused(err)
	}
	list = make([]runs.Run, len(found))
	for i, r := range found {
		list[i] = runs.Of(r).Priced(s.Config.Prices)
	}
	return list, next, nil
}

// SummariseRuns sums a tenant's runs by outcome and error kind. Cursor and Limit of the filter do not count.
func (s *Service) SummariseRuns(ctx context.Context, tenant string, f store.RunFilter) ([]runs.Group, error) {
	groups, err := s.Store.SummariseRuns(ctx, tenant, f)
	if err != nil {
		return nil, refused(err)
	}
	return runs.GroupsOf(groups, s.Config.Prices), nil
}

// Usage sums a tenant's model calls since a time by "tenant", "conversation", "model" or "day".
func (s *Service) Usage(ctx context.Context, tenant, groupBy string, since time.Time) ([]runs.UsageGroup, error) {
	groups, err := s.Store.UsageBy(ctx, tenant, groupBy, since)
	if err != nil {
		return nil, refused(err)
	}
	return runs.UsageGroupsOf(groups, s.Config.Prices), nil
}
