package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

type StatePath struct {
	ConversationPath
	Key string `path:"key" limit:"run_id" doc:"skills, todo, plan, mode, project_root, automation, transcripts_folder, pins, or a key of your own that begins with x-."`
}

type putStateInput struct {
	StatePath
	Payload payload[wire.StateValue]
}

type stateOutput struct{ Body wire.StateEntry }

type listStateOutput struct{ Body wire.StateList }

type emptyOutput struct{}

func (s *Server) state() {
	path := "/v1/conversations/{id}/state"
	register(s, huma.Operation{
		OperationID: "list-state", Method: http.MethodGet, Path: path, Tags: []string{tagState},
		Summary: "List the live state",
	}, traits{}, func(ctx context.Context, q *request, in *ConversationPath) (*listStateOutput, error) {
		list, err := s.service.ListState(ctx, in.ref(q))
		if err != nil {
			return nil, err
		}
		return &listStateOutput{wire.StateList{State: list}}, nil
	})
	register(s, huma.Operation{
		OperationID: "get-state", Method: http.MethodGet, Path: path + "/{key}", Tags: []string{tagState},
		Summary: "Read a key of the live state",
	}, traits{}, func(ctx context.Context, q *request, in *StatePath) (*stateOutput, error) {
		e, err := s.service.GetState(ctx, in.ref(q), in.Key)
		if err != nil {
			return nil, err
		}
		return &stateOutput{Body: e}, nil
	})
	register(s, huma.Operation{
		OperationID: "put-state", Method: http.MethodPut, Path: path + "/{key}", Tags: []string{tagState},
		Summary: "Set a key of the live state",
		Description: "After every compaction the context has the current value " +
			"once. It takes effect at the next turn, or at the next compaction if that is earlier.",
	}, traits{repeatable: true}, func(ctx context.Context, q *request, in *putStateInput) (*stateOutput, error) {
		if v := in.Payload.value; v.Text == nil && v.Items == nil {
			return nil, problem(service.CodeInvalid,
				"the value has neither text nor items: give one of them").at("body")
		}
		e, err := s.service.PutState(ctx, in.ref(q), in.Key, in.Payload.value)
		if err != nil {
			return nil, err
		}
		return &stateOutput{Body: e}, nil
	})
	register(s, huma.Operation{
		OperationID: "delete-state", Method: http.MethodDelete, Path: path + "/{key}", Tags: []string{tagState},
		Summary: "Remove a key of the live state", DefaultStatus: http.StatusNoContent,
	}, traits{repeatable: true}, func(ctx context.Context, q *request, in *StatePath) (*emptyOutput, error) {
		if err := s.service.DeleteState(ctx, in.ref(q), in.Key); err != nil {
			return nil, err
		}
		return &emptyOutput{}, nil
	})
}
