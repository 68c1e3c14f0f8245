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
		Tags: []string{tagCompactions}, DefaultStatus: http.StatusOK, Summary: "Compact by hand",
		Description: "Whatever the numbers. 202 with the run that goes on, or 200 when it ended within the wait. " +
			"While one of the conversation is under way it gives that one. Nothing is deleted.",
	}, traits{waits: true, also: http.StatusAccepted, codes: []service.Code{service.CodeReplyOpen}}, s.compact)
	register(s, huma.Operation{
		OperationID: "list-compactions", Method: http.MethodGet, Path: "/v1/conversations/{id}/compactions",
		Tags: []string{tagCompactions}, Summary: "The timeline of compactions",
		Description: "Newest first: runs of precis, and compactions that the agent's own runtime did.",
	}, traits{}, s.listCompactions)
	register(s, huma.Operation{
		OperationID: "report-marker", Method: http.MethodPost, Path: "/v1/conversations/{id}/markers",
		Tags: []string{tagCompactions}, DefaultStatus: http.StatusCreated,
		Summary: "Report a compaction that the agent's own runtime did",
		Description: "It counts from then on, beside those of precis, and can be undone. It takes a trusted key " +
			"(`precis keys create --trusted`): a forged summary would hide the history.",
	}, traits{codes: []service.Code{service.CodeConflict}}, s.reportMarker)
	register(s, huma.Operation{
		OperationID: "undo", Method: http.MethodDelete, Path: "/v1/conversations/{id}/marker",
		Tags: []string{tagCompactions}, DefaultStatus: http.StatusOK, Summary: "Undo the newest compaction",
		Description: "The context is what it was before it, and what came since. Again goes back one more, down " +
			"to the full history. No automatic compaction starts until the next user message.",
	}, traits{codes: []service.Code{service.CodeNothingToUndo}}, s.undo)
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
