package api

import (
	"context"
	"io"
	"net/http"
	"os"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/api/wire"
	"precis/internal/service"
)

type exportInput struct{ ConversationPath }

func (s *Server) exports() {
	op := huma.Operation{
		OperationID: "export-conversation", Method: http.MethodGet, Path: "/v1/conversations/{id}/export",
		Tags: []string{tagAudit}, Summary: "Export a conversation with its runs and their evidence",
		Description: "JSON lines, as `precis export` writes them and `precis import` reads them. The last line " +
			"has the number of rows and a hash: " +
			"without it the answer is incomplete. A conversation with a run in progress cannot be exported.",
	}
	register(s, op, traits{waits: true, codes: []wire.Code{service.CodeRunActive}}, s.export)
	operationAt(s.api.OpenAPI(), op).Responses["200"] = &huma.Response{
		Description: "The file.",
		Content: map[string]*huma.MediaType{
			"application/jsonl": {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}
}

// export writes to a file first, so that an error is answered with a problem document and not with an incomplete
// stream.
func (s *Server) export(ctx context.Context, q *request, in *exportInput) (*huma.StreamResponse, error) {
	file, err := os.CreateTemp("", "precis-export-*")
	if err != nil {
		return nil, err
	}
	if err = os.Remove(file.Name()); err == nil {
		_, err = s.service.Export(ctx, in.ref(q), file)
	}
	if err == nil {
		_, err = file.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer func() { _ = file.Close() }()
		hc.SetHeader("Content-Type", "application/jsonl")
		_, _ = io.Copy(hc.BodyWriter(), file) // the last line says whether the file is complete
	}}, nil
}
