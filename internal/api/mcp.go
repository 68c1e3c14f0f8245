package api

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"precis/internal/contract"
	"precis/internal/mcp"
	"precis/internal/service"
	"precis/internal/store"
	"precis/pipeline/transcript/rawjson"
)

// mcp serves the memory of conversations over MCP's streamable HTTP: at /mcp, where each call names its conversation,
// and at a conversation's own path. There are no sessions: each request is authenticated and handled by itself, so that
// any server can answer it and no client can continue the session of another one.
func (s *Server) mcp() {
	handler := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		return mcp.New(mcp.Options{
			Service: s.service, Tenant: requestOf(r.Context()).tenant, Conversation: r.PathValue("id"),
			Timeout: s.timeout(), Log: s.log, Scope: requestOf(r.Context()).scope,
		})
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
		MaxRequestBodyBytes: contract.MaxMCPBody,
		// Requests without a key are held to localhost by open; those with one may come through a proxy on this
		// machine.
		DisableLocalhostProtection: true,
	})
	for _, path := range []string{"/mcp", "/v1/conversations/{id}/mcp"} {
		s.mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			q := requestOf(r.Context())
			q.route = path
			if p := s.enterMCP(w, r, q); p != nil {
				p.write(w, r)
				return
			}
			done, p := s.limits.enter(q.tenant, false)
			if p != nil {
				p.write(w, r)
				return
			}
			defer done()
			watched, leave := s.keys.watch(r.Context(), q.key)
			defer leave()
			handler.ServeHTTP(w, r.WithContext(watched))
		})
	}
}

// enterMCP finds the tenant of a request, and reads its body.
func (s *Server) enterMCP(w http.ResponseWriter, r *http.Request, q *request) *Problem {
	if p := s.identify(r, q); p != nil {
		return p
	}
	if id := r.PathValue("id"); id != "" {
		if _, err := s.store.Conversations.Get(r.Context(),
			store.ConversationRef{Tenant: q.tenant, ID: id}); err != nil {
			return problemOf(r.Context(), err)
		}
	}
	if r.Method != http.MethodPost {
		return nil // the handler refuses every other method
	}
	body, p := s.wholeBody(r, w, min(contract.MaxMCPBody, int64(s.config.MaxBodyBytes)))
	if p != nil {
		return p
	}
	if p := checkMCP(body); p != nil {
		return p
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// checkMCP refuses a message that costs more than it says. A batch would be several requests that count as one; no
// version of MCP since 2025-06-18 has batches. Answers repeat the id of a message, and errors its keys.
func checkMCP(body []byte) *Problem {
	switch {
	case invalidUTF8(body) >= 0, !json.Valid(body):
		p := problem(service.CodeInvalid, "the body is not valid JSON: send one JSON-RPC message").at("body")
		p.Status = http.StatusBadRequest
		return p.complete()
	case tooDeep(body) >= 0:
		return problem(service.CodeInvalid, "is nested deeper than %d levels", contract.MaxDepth).at("body")
	case rawjson.Root(body).IsArray():
		return problem(service.CodeInvalid, "JSON-RPC batches are not supported: send one message in each "+
			"request").at("body")
	}
	limit := contract.LimitOf("cursor").Max
	for key, f := range rawjson.Root(body).Fields() {
		if len(f.Value.Raw()) > limit && string(key) != "params" && string(key) != "result" {
			return problem(service.CodeTooLarge, "is larger than %d bytes, which is the maximum", limit).at("body." +
				string(key))
		}
	}
	if longKey(body, limit) >= 0 {
		return problem(service.CodeTooLarge, "has a key of more than %d bytes, which is the maximum", limit).at("body")
	}
	return nil
}

// longKey returns the index of a key in data, which is valid JSON, that is longer than limit, -1 if there is none.
func longKey(data []byte, limit int) int {
	for i := 0; i < len(data); i++ {
		if data[i] != '"' {
			continue
		}
		end := rawjson.At(data, i).End()
		colon := rawjson.SkipSpace(data, end)
		if end-i > limit && colon < len(data) && data[colon] == ':' {
			return i
		}
		i = end - 1
	}
	return -1
}
