package service

import (
	"context"

	"precis/internal/runreport"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
)

// FindRun gives the run of a tenant that a person names, by its id or by the end of it. Two runs that end alike are
// CodeInvalid.
func (s *Service) FindRun(ctx context.Context, tenant, id string) (store.RunRef, error) {
	ref, err := s.Store.Runs.FindByEnd(ctx, tenant, id)
	return ref, refused(err)
}

// CountRuns counts a tenant's runs by outcome; runreport.Unfinished stands for those without one. Cursor and Limit of
// the filter do not count.
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

// FindConversation gives the row of a conversation, without its state. It refuses an id that names none.
func (s *Service) FindConversation(ctx context.Context,
	ref store.ConversationRef,
) (conversations.Conversation, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	return c, refused(err)
}
