package api

import (
	"bytes"
	"io"
	"net/http"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"precis/internal/mcp"
	"precis/internal/store"
)

// maxMCPBody bounds a message of an MCP client: the largest note with every character escaped.
const maxMCPBody = 2 << 20

// mcp serves the memory of conversations over MCP's streamable HTTP: at /mcp, where each call names its conversation,
// and at a conversation's own path. There are no sessions: each request is authenticated and handled by itself, so that
// any server can answer it and no client can continue the session of another one.
func (s *Server) mcp() {
	handler := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		return mcp.New(mcp.Options{
			Service: s.service, Tenant: requestOf(r.Context()).tenant, Conversation: r.PathValue("id"),
			Timeout: s.timeout(), Log: s.log,
		})
	}, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
		MaxRequestBodyBytes: maxMCPBody,
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
			handler.ServeHTTP(w, r)
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
	body, p := s.wholeBody(r, w, min(maxMCPBody, int64(s.config.MaxBodyBytes)))
	if p != nil {
		return p
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}
