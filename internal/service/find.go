package service

import (
	"context"

	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
)

// FindRun returns the run of a tenant whose id is id or ends with it. The error has CodeInvalid if several runs match.
func (s *Service) FindRun(ctx context.Context, tenant, id string) (store.RunRef, error) {
	ref, err := s.Store.Runs.FindByEnd(ctx, tenant, id)
	return ref, refused(err)
}

// CountRuns counts a tenant's runs by outcome, with runreport.Unfinished for those without one. It ignores Cursor and
// Limit of the filter.
func (s *Service) CountRuns(ctx context.Context, tenant string, f runs.Filter) (map[string]int, error) {
	counts, err := s.Store.Runs.Count(ctx, tenant, f)
	if err != nil {
		return nil, refused(err)
	}
	out := map[string]int{}
	for outcome, n := range counts {
		name := string(outcome)
		if name == "" {
			name = runreport.Unfinished
		}
		out[name] = n
	}
	return out, nil
}

// FindConversation returns a conversation as stored, without its state. The error has CodeNotFound if there is none.
func (s *Service) FindConversation(ctx context.Context,
	ref store.ConversationRef,
) (conversations.Conversation, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	return c, refused(err)
}
