package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/runs"
	"precis/internal/service"
	"precis/internal/store"
	"precis/pipeline"
)

// RunPath is part of the input of every operation on a run.
type RunPath struct {
	Run string `path:"run" maxLength:"64" doc:"The run's id."`
}

func (p RunPath) ref(q *request) store.RunRef { return store.RunRef{Tenant: q.tenant, ID: p.Run} }

type listRunsInput struct {
	Page
	Conversation string             `query:"conversation" doc:"Only this conversation's."`
	Outcome      string             `query:"outcome" enum:"applied,prepared,skipped,superseded,cancelled,failed,unfinished" doc:"Only those that ended so; unfinished: those that have not."`
	ErrorKind    pipeline.ErrorKind `query:"error_kind" doc:"Only those that failed so."`
	Digest       string             `query:"digest" enum:"true,false" doc:"Only those that a digest stands in for, or only the others."`
	Since        time.Time          `query:"since" doc:"Only those asked for from this time on (RFC 3339)."`
	Until        time.Time          `query:"until" doc:"Only those asked for before this time (RFC 3339)."`
}

type listRunsOutput struct {
	Body struct {
		Runs []runs.Run `json:"runs"`
		Next string     `json:"next,omitempty" doc:"Cursor of the next page; left out after the last."`
	}
}

type getRunInput struct {
	RunPath
	Include []string `query:"include" doc:"Texts to add: prompts, answers, summary, context, separated by commas."`
}

func (s *Server) runs() {
	register(s, huma.Operation{
		OperationID: "list-runs", Method: http.MethodGet, Path: "/v1/runs", Tags: []string{tagAudit},
		Summary: "List runs", Description: "Newest first, without their steps.",
	}, traits{}, s.listRuns)
	register(s, huma.Operation{
		OperationID: "get-run", Method: http.MethodGet, Path: "/v1/runs/{run}", Tags: []string{tagAudit},
		Summary: "What a run did, step by step",
	}, traits{}, s.getRun)
	register(s, huma.Operation{
		OperationID: "cancel-run", Method: http.MethodPost, Path: "/v1/runs/{run}/cancel", Tags: []string{tagAudit}, DefaultStatus: http.StatusOK,
		Summary: "Cancel a run", Description: "Gives the run as it ended: cancelled, unless its marker was applied just before. A prepared summary that waits is given up.",
	}, traits{repeatable: true}, s.cancelRun)
}

func (s *Server) listRuns(ctx context.Context, q *request, in *listRunsInput) (*listRunsOutput, error) {
	f := store.RunFilter{
		Conversation: in.Conversation, Outcome: store.Outcome(in.Outcome), ErrorKind: in.ErrorKind,
		Since: in.Since, Until: in.Until, Cursor: in.Cursor, Limit: in.Limit,
	}
	if in.Outcome == "unfinished" {
		f.Outcome, f.Unfinished = "", true
	}
	if in.Digest != "" {
		f.Digest = ptr(in.Digest == "true")
	}
	list, next, err := s.service.ListRuns(ctx, q.tenant, f)
	if err != nil {
		return nil, err
	}
	out := &listRunsOutput{}
	out.Body.Runs, out.Body.Next = list, next
	return out, nil
}

type getRunOutput struct{ Body runs.Run }

func (s *Server) getRun(ctx context.Context, q *request, in *getRunInput) (*getRunOutput, error) {
	for _, name := range in.Include {
		switch name {
		case "prompts", "answers", "summary", "context":
		default:
			return nil, problem(service.CodeInvalid, "include is prompts, answers, summary or context, not %q", name).at("query.include")
		}
	}
	run, err := s.service.GetRun(ctx, in.ref(q), in.Include)
	if err != nil {
		return nil, err
	}
	return &getRunOutput{Body: run}, nil
}

func (s *Server) cancelRun(ctx context.Context, q *request, in *RunPath) (*runOutput, error) {
	run, err := s.service.CancelRun(ctx, in.ref(q))
	if err != nil {
		return nil, err
	}
	return runAnswer(run), nil
}
