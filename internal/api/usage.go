package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
)

type usageInput struct {
	GroupBy string    `query:"group_by" limit:"word" enum:"tenant,conversation,model,day" default:"tenant" doc:"What each sum is for. Days are in UTC."`
	Since   time.Time `query:"since" doc:"Only calls at or after this time (RFC 3339). Left out: all calls."`
}

type usageOutput struct{ Body wire.UsageList }

func (s *Server) usage() {
	register(s, huma.Operation{
		OperationID: "get-usage", Method: http.MethodGet, Path: "/v1/usage", Tags: []string{tagAudit},
		Summary:     "Sum the model calls of compactions",
		Description: "Every request to a model counts, also those that failed or were interrupted.",
	}, traits{}, func(ctx context.Context, q *request, in *usageInput) (*usageOutput, error) {
		groups, err := s.service.Usage(ctx, q.tenant, in.GroupBy, in.Since)
		if err != nil {
			return nil, err
		}
		return &usageOutput{wire.UsageList{GroupBy: in.GroupBy, Usage: groups}}, nil
	})
}
