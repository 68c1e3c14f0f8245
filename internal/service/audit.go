package service

import (
	"context"
	"time"

	"precis/internal/api/wire"
	"precis/internal/runreport"
	"precis/internal/store/runs"
)

// ListRuns returns a page of a tenant's runs, newest first, without their attempts.
func (s *Service) ListRuns(ctx context.Context, tenant string,
	f runs.Filter,
) (list []wire.Run, next string, err error) {
	found, next, err := s.Store.Runs.List(ctx, tenant, f)
	if err != nil {
		return nil, "", refused(err)
	}
	list = make([]wire.Run, len(found))
	for i, r := range found {
		list[i] = listed(runreport.Priced(runreport.Of(r), s.Config.Prices))
	}
	return list, next, nil
}

// SummarizeRuns sums a tenant's runs by outcome and error kind. It ignores Cursor and Limit of the filter.
func (s *Service) SummarizeRuns(ctx context.Context, tenant string, f runs.Filter) ([]wire.RunGroup, error) {
	groups, err := s.Store.Runs.Summarize(ctx, tenant, f)
	if err != nil {
		return nil, refused(err)
	}
	return runreport.GroupsOf(groups, s.Config.Prices), nil
}

// Usage sums a tenant's model calls since a time by "tenant", "conversation", "model" or "day".
func (s *Service) Usage(ctx context.Context, tenant, groupBy string, since time.Time) ([]wire.RunUsageGroup, error) {
	groups, err := s.Store.ModelCalls.UsageBy(ctx, tenant, groupBy, since)
	if err != nil {
		return nil, refused(err)
	}
	return runreport.UsageGroupsOf(groups, s.Config.Prices), nil
}
