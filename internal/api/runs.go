package api

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/runreport"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// RunPath is part of the input of every operation on a run.
type RunPath struct {
	Run string `path:"run" limit:"run_id" doc:"The run's id."`
}

func (p RunPath) ref(q *request) store.RunRef { return store.RunRef{Tenant: q.tenant, ID: p.Run} }

// RunFilter is part of the input of the operations on several runs.
type RunFilter struct {
	Conversation string             `query:"conversation" limit:"conversation_id" doc:"Only runs of this conversation."`
	Outcome      string             `query:"outcome" limit:"word" enum:"applied,prepared,skipped,superseded,cancelled,failed,replayed,unfinished" doc:"Only runs with this outcome. unfinished: runs that have not ended."`
	ErrorKind    pipeline.ErrorKind `query:"error_kind" limit:"word" doc:"Only runs with this error kind."`
	Digest       string             `query:"digest" limit:"word" enum:"true,false" doc:"Only runs whose summary is a digest, or only the others."`
	Trigger      string             `query:"trigger" limit:"word" enum:"tokens,turns,manual,background,overflow" doc:"Only runs that this trigger started."`
	Summarizer   string             `query:"summarizer" limit:"word" doc:"Only runs whose summary this summarizer wrote: self, VENDOR/MODEL or digest."`
	ReplayOf     string             `query:"replay_of" limit:"run_id" doc:"Only replays of this run."`
	Since        time.Time          `query:"since" doc:"Only runs requested at or after this time (RFC 3339)."`
	Until        time.Time          `query:"until" doc:"Only runs requested before this time (RFC 3339)."`
}

// Resolve refuses an unknown error kind: an empty list would look as if no run had failed that way.
func (in *RunFilter) Resolve(huma.Context) []error {
	if in.ErrorKind == "" || slices.Contains(pipeline.ErrorKinds, in.ErrorKind) {
		return nil
	}
	names := make([]string, len(pipeline.ErrorKinds))
	for i, kind := range pipeline.ErrorKinds {
		names[i] = string(kind)
	}
	return []error{&huma.ErrorDetail{
		Location: "query.error_kind",
		Message:  "expected one of " + strings.Join(names, ", "), Value: in.ErrorKind,
	}}
}

func (in RunFilter) store() runs.Filter {
	f := runs.Filter{
		Conversation: in.Conversation, Outcome: precis.Outcome(in.Outcome), ErrorKind: in.ErrorKind,
		Trigger: pipeline.TriggerKind(in.Trigger), Summarizer: in.Summarizer, ReplayOf: in.ReplayOf, Since: in.Since,
		Until: in.Until,
	}
	if in.Outcome == runreport.Unfinished {
		f.Outcome, f.Unfinished = "", true
	}
	if in.Digest != "" {
		f.Digest = ptr(in.Digest == "true")
	}
	return f
}

type listRunsInput struct {
	Page
	RunFilter
}

type sumRunsInput struct{ RunFilter }

type sumRunsOutput struct{ Body wire.RunSummary }

type listRunsOutput struct{ Body wire.RunList }

type getRunInput struct {
	RunPath
	Include []string `query:"include" limit:"include" doc:"Texts to add, separated by commas: prompts, answers, summary, context, omitted (the messages that a summarizer did not see in full)."`
}

func (s *Server) runs() {
	register(s, huma.Operation{
		OperationID: "list-runs", Method: http.MethodGet, Path: "/v1/runs", Tags: []string{tagAudit},
		Summary: "List runs", Description: "Newest first, without their steps.",
	}, traits{}, s.listRuns)
	register(s, huma.Operation{
		OperationID: "sum-runs", Method: http.MethodGet, Path: "/v1/runs/summary", Tags: []string{tagAudit},
		Summary:     "Sum runs by outcome and error kind",
		Description: "Their number, model calls, tokens, cost and time. It has the filters of the list.",
	}, traits{}, s.sumRuns)
	register(s, huma.Operation{
		OperationID: "get-run", Method: http.MethodGet, Path: "/v1/runs/{run}", Tags: []string{tagAudit},
		Summary: "Read a run with its steps",
	}, traits{}, s.getRun)
	register(s, huma.Operation{
		OperationID: "cancel-run", Method: http.MethodPost, Path: "/v1/runs/{run}/cancel", Tags: []string{tagAudit},
		DefaultStatus: http.StatusOK, Summary: "Cancel a run", Description: "Returns the run as it ended: " +
			"cancelled, unless its marker was applied just before. A prepared summary is discarded.",
	}, traits{repeatable: true}, s.cancelRun)
	s.replays()
	s.verification()
	s.exports()
}

func (s *Server) listRuns(ctx context.Context, q *request, in *listRunsInput) (*listRunsOutput, error) {
	f := in.store()
	f.Cursor, f.Limit = in.Cursor, in.Limit
	list, next, err := s.service.ListRuns(ctx, q.tenant, f)
	if err != nil {
		return nil, err
	}
	return &listRunsOutput{wire.RunList{Runs: list, Next: next}}, nil
}

func (s *Server) sumRuns(ctx context.Context, q *request, in *sumRunsInput) (*sumRunsOutput, error) {
	groups, err := s.service.SummarizeRuns(ctx, q.tenant, in.store())
	if err != nil {
		return nil, err
	}
	return &sumRunsOutput{wire.RunSummary{Groups: groups}}, nil
}

type getRunOutput struct{ Body wire.Run }

func (s *Server) getRun(ctx context.Context, q *request, in *getRunInput) (*getRunOutput, error) {
	for _, name := range in.Include {
		switch name {
		case "prompts", "answers", "summary", "context", "omitted":
		default:
			return nil, problem(service.CodeInvalid,
				"include is %q: it must be prompts, answers, summary, context or omitted",
				name).at("query.include")
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
