package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
)

type verifyOutput struct{ Body wire.AuditReport }

func (s *Server) verification() {
	register(s, huma.Operation{
		OperationID: "verify-run", Method: http.MethodGet, Path: "/v1/runs/{run}/verify", Tags: []string{tagAudit},
		Summary: "Verify that a run was not changed",
		Description: "Recomputes what the run commits to: its messages, its record, its texts, its summary and " +
			"its context. " +
			"Each check is `ok`, `pruned`, `differs`, `missing` or `tampered`, and names the table, row and " +
			"column at fault.",
	}, traits{}, s.verify)
}

func (s *Server) verify(ctx context.Context, q *request, in *struct{ RunPath }) (*verifyOutput, error) {
	r, err := s.service.Verify(ctx, in.ref(q))
	if err != nil {
		return nil, err
	}
	return &verifyOutput{Body: r}, nil
}
