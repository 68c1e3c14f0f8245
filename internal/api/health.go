package api

import (
	"context"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/version"
)

type aliveOutput struct{ Body wire.Alive }

type readyOutput struct {
	Status int
	Body   wire.Ready
}

func (s *Server) health() {
	register(s, huma.Operation{
		OperationID: "healthz", Method: http.MethodGet, Path: "/healthz", Tags: []string{tagServer},
		Summary: "Check that the process is alive",
	}, traits{public: true}, func(context.Context, *request, *struct{}) (*aliveOutput, error) {
		return &aliveOutput{Body: wire.Alive{Status: "ok", Version: version.Code()}}, nil
	})
	ready := huma.Operation{
		OperationID: "readyz", Method: http.MethodGet, Path: "/readyz", Tags: []string{tagServer},
		Summary: "Check that precis can work", Description: "PostgreSQL and Temporal answer, and workers poll both " +
			"task queues. Otherwise, and while the server is stopping, 503.",
	}
	p := NewProbe(s.service.Store, s.service.Temporal, s.service.Config)
	register(s, ready, traits{public: true}, func(ctx context.Context, _ *request, _ *struct{}) (*readyOutput, error) {
		r := p.Ready(ctx)
		if s.stopping.Err() != nil {
			r = wire.Ready{
				Status: "not_ready",
				Checks: append([]wire.Check{{Name: "server", Detail: "the server is stopping"}}, r.Checks...),
			}
		}
		out := &readyOutput{Status: http.StatusOK, Body: r}
		if r.Status != "ready" {
			out.Status = http.StatusServiceUnavailable
		}
		return out, nil
	})
	doc := operationAt(s.api.OpenAPI(), ready)
	doc.Responses["503"] = &huma.Response{Description: "A check failed.", Content: doc.Responses["200"].Content}

	metrics := &huma.Operation{
		OperationID: "metrics", Method: http.MethodGet, Path: "/metrics", Tags: []string{tagServer},
		Summary:  "Metrics in Prometheus' format",
		Security: []map[string][]string{}, Responses: map[string]*huma.Response{"200": {
			Description: "The metrics.",
			Content: map[string]*huma.MediaType{
				"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}},
			},
		}},
	}
	maps.Copy(metrics.Responses, failures(s.api, *metrics, traits{public: true}))
	s.api.OpenAPI().AddOperation(metrics)
	s.mux.Handle("GET /metrics", s.telemetry.Handler())
}
