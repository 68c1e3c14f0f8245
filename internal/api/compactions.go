package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

type compactInput struct {
	ConversationPath
	Payload payload[wire.NewCompactionInput]
}

type listCompactionsInput struct {
	ConversationPath
	Page
}

type listCompactionsOutput struct{ Body wire.CompactionList }

func (s *Server) compactions() {
	register(s, huma.Operation{
		OperationID: "compact", Method: http.MethodPost, Path: "/v1/conversations/{id}/compactions",
		Tags: []string{tagCompactions}, DefaultStatus: http.StatusOK, Summary: "Compact manually",
		Description: "Whatever the size of the context. 202 with the run while it is in progress, or 200 if it " +
			"ended within the wait. " +
			"If a run of the conversation is in progress, the answer is that run. Nothing is deleted.",
	}, traits{waits: true, also: http.StatusAccepted, codes: []wire.Code{service.CodeReplyOpen}}, s.compact)
	register(s, huma.Operation{
		OperationID: "list-compactions", Method: http.MethodGet, Path: "/v1/conversations/{id}/compactions",
		Tags: []string{tagCompactions}, Summary: "List compactions",
		Description: "Newest first: runs of precis, and compactions that the agent's own runtime did.",
	}, traits{}, s.listCompactions)
	register(s, huma.Operation{
		OperationID: "report-marker", Method: http.MethodPost, Path: "/v1/conversations/{id}/markers",
		Tags: []string{tagCompactions}, DefaultStatus: http.StatusCreated,
		Summary: "Report a compaction that the agent's own runtime did",
		Description: "It takes effect like a compaction of precis, and can be undone. It needs a trusted key " +
			"(`precis keys create --trusted`): a forged summary could hide the history.",
	}, traits{codes: []wire.Code{service.CodeConflict}}, s.reportMarker)
	register(s, huma.Operation{
		OperationID: "undo", Method: http.MethodDelete, Path: "/v1/conversations/{id}/marker",
		Tags: []string{tagCompactions}, DefaultStatus: http.StatusOK, Summary: "Undo the newest compaction",
		Description: "The context is what it was before, with the messages since. Repeated, it undoes one more, down " +
			"to the full history. No automatic compaction starts before the next user message.",
	}, traits{codes: []wire.Code{service.CodeNothingToUndo}}, s.undo)
}

func (s *Server) compact(ctx context.Context, q *request, in *compactInput) (*runOutput, error) {
	b := in.Payload.value
	ask, cancel := context.WithTimeout(ctx, s.timeout())
	defer cancel()
	run, done, err := s.service.Compact(ask, in.ref(q), service.CompactRequest{
		Focus: b.Focus, Full: b.Full, ForceExternal: b.ForceExternal, Prompt: b.Prompt, Summarizer: b.Summarizer,
	})
	if err != nil {
		return nil, err
	}
	if !done && b.WaitSeconds > 0 {
		run, err = s.await(ctx, q, run, time.Duration(b.WaitSeconds)*time.Second)
		if err != nil {
			return nil, err
		}
	}
	return runAnswer(run), nil
}

func (s *Server) listCompactions(ctx context.Context, q *request,
	in *listCompactionsInput,
) (*listCompactionsOutput, error) {
	list, next, err := s.service.ListCompactions(ctx, in.ref(q), in.Cursor, in.Limit)
	if err != nil {
		return nil, err
	}
	return &listCompactionsOutput{wire.CompactionList{Compactions: list, Next: next}}, nil
}
