package api

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/service"
)

type StatePath struct {
	ConversationPath
	Key string `path:"key" maxLength:"64" doc:"skills, todo, plan, mode, project_root, automation, transcripts_folder, pins, or a key of your own that begins with x-."`
}

type stateValue struct {
	Text  *string           `json:"text,omitempty" doc:"The value as text."`
	Items []json.RawMessage `json:"items,omitempty" doc:"The value as a list, of which each entry stands on a line of its own: strings, or objects such as {\"text\":…,\"status\":…}."`
}

func (v stateValue) service() service.StateValue {
	return service.StateValue{Text: v.Text, Items: v.Items}
}

type putStateInput struct {
	StatePath
	Payload payload[stateValue]
}

type stateOutput struct{ Body service.StateEntry }

type listStateOutput struct {
	Body struct {
		State []service.StateEntry `json:"state"`
	}
}

type emptyOutput struct{}

func (s *Server) state() {
	path := "/v1/conversations/{id}/state"
	register(s, huma.Operation{
		OperationID: "list-state", Method: http.MethodGet, Path: path, Tags: []string{tagState},
		Summary: "Every piece of live state that is set",
	}, traits{}, func(ctx context.Context, q *request, in *ConversationPath) (*listStateOutput, error) {
		list, err := s.service.ListState(ctx, in.ref(q))
		if err != nil {
			return nil, err
		}
		out := &listStateOutput{}
		out.Body.State = list
		return out, nil
	})
	register(s, huma.Operation{
		OperationID: "get-state", Method: http.MethodGet, Path: path + "/{key}", Tags: []string{tagState},
		Summary: "The current value of a key",
	}, traits{}, func(ctx context.Context, q *request, in *StatePath) (*stateOutput, error) {
		e, err := s.service.GetState(ctx, in.ref(q), in.Key)
		if err != nil {
			return nil, err
		}
		return &stateOutput{Body: e}, nil
	})
	register(s, huma.Operation{
		OperationID: "put-state", Method: http.MethodPut, Path: path + "/{key}", Tags: []string{tagState},
		Summary: "Set a key", Description: "The value stands in the context after every compaction, current and " +
			"once. It counts from the start of the next turn, or from the next compaction if that is earlier.",
	}, traits{repeatable: true}, func(ctx context.Context, q *request, in *putStateInput) (*stateOutput, error) {
		if v := in.Payload.value; v.Text == nil && v.Items == nil {
			return nil, problem(service.CodeInvalid, "give text or items").at("body")
		}
		e, err := s.service.PutState(ctx, in.ref(q), in.Key, in.Payload.value.service())
		if err != nil {
			return nil, err
		}
		return &stateOutput{Body: e}, nil
	})
	register(s, huma.Operation{
		OperationID: "delete-state", Method: http.MethodDelete, Path: path + "/{key}", Tags: []string{tagState},
		Summary: "Remove a key", DefaultStatus: http.StatusNoContent,
	}, traits{repeatable: true}, func(ctx context.Context, q *request, in *StatePath) (*emptyOutput, error) {
		if err := s.service.DeleteState(ctx, in.ref(q), in.Key); err != nil {
			return nil, err
		}
		return &emptyOutput{}, nil
	})
}
