package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
)

type usageInput struct {
	GroupBy string    `query:"group_by" enum:"tenant,conversation,model,day" default:"tenant" doc:"What each sum is of; a day is one of UTC."`
	Since   time.Time `query:"since" doc:"Only calls from this time on (RFC 3339). Left out: all."`
}

type usageOutput struct{ Body wire.UsageList }

func (s *Server) usage() {
	register(s, huma.Operation{
		OperationID: "get-usage", Method: http.MethodGet, Path: "/v1/usage", Tags: []string{tagAudit},
		Summary:     "Tokens and calls booked under /compact",
		Description: "Every request to a model counts, those that failed or were interrupted too.",
	}, traits{}, func(ctx context.Context, q *request, in *usageInput) (*usageOutput, error) {
		groups, err := s.service.Usage(ctx, q.tenant, in.GroupBy, in.Since)
		if err != nil {
			return nil, err
		}
		return &usageOutput{wire.UsageList{GroupBy: in.GroupBy, Usage: groups}}, nil
	})
}
