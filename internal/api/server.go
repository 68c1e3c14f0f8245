// Package api serves the service over HTTP: huma on net/http, OpenAPI 3.1, problem documents. It is thin: each route
// reads its request, calls one method of the service and writes the result. The wire forms are in package wire.
//
//	server.go       a Server and its routes; serve.go listening and stopping
//	operation.go    what all operations share: registering, timeouts; accept.go the media type of answers
//	request.go      the id and log line of a request; answer.go timeouts of writing
//	auth.go         keys and tenants; scopes.go what a key may do, key_watch.go keys that end during a request,
//	                bad_keys.go the rate of bad ones, doors.go requests without a key
//	limits.go       rates and open requests
//	body.go         reading a body, within the budget of budget.go; payload.go checking it against its schema, by
//	                check.go, malformed.go, unicode.go; bounds.go the limits of its fields
//	encode.go       writing answers with raw JSON byte for byte; fields.go the fields of a struct
//	idempotency.go  answers that are kept for retries; settle.go how a keyed request ended
//	problem.go      problem documents; codes.go their codes, problem_huma.go those of huma's own failures
//	hub.go          the followers of conversations; event_stream.go one stream of events
//	health.go       alive, ready, metrics; probe.go the checks, observed.go the same for a worker
//	document.go     the operations in the OpenAPI document, schemas.go its schemas
//	docs.go         the readable page of the OpenAPI document; docs_page.go its data
//	mcp.go          the memory of conversations as an MCP server
//
// and a file for each group of routes: conversations, messages, contexts, replies, compactions, markers, state, memory,
// events, runs, replay, verify, export, oneshot, usage, settings.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"reflect"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/launch"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/telemetry"
	"precis/internal/version"
)

// Options configure a Server.
type Options struct {
	// Service also has the store, the Temporal client and the configuration.
	Service *service.Service
	// Telemetry records metrics and traces, nil: nothing is recorded.
	Telemetry *telemetry.Telemetry
}

// Server is the HTTP API.
type Server struct {
	service   *service.Service
	store     *store.Store
	config    config.HTTP
	launcher  launch.Launcher
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	api       huma.API
	mux       *http.ServeMux
	handler   http.Handler
	hub       *hub
	keys      *keyWatch
	badKeys   badKeys
	limits    limits
	// pending are ends of keyed requests that could not be recorded yet.
	pending pending
	// local says that only this machine can reach the server. Then no keys are needed while none exist.
	local atomic.Bool
	// stopping ends when the server stops.
	stopping context.Context
	stop     context.CancelFunc
	// heartbeat is how often a silent event stream sends a comment.
	heartbeat time.Duration
}

// New returns a server. It does not listen yet.
func New(o Options) *Server {
	cfg := o.Service.Config
	s := &Server{
		service: o.Service, store: o.Service.Store, config: cfg.HTTP, log: o.Service.Log, telemetry: o.Telemetry,
		launcher:  launch.Launcher{Store: o.Service.Store, Client: o.Service.Temporal, Config: cfg},
		mux:       http.NewServeMux(),
		heartbeat: heartbeat,
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.limits.config, s.limits.bodies = cfg.HTTP, newBudget(cfg.HTTP)
	s.hub = newHub(s.store, s.log)
	s.keys = &keyWatch{log: s.log, every: keyCheckInterval, ended: func(ctx context.Context, ids []string) ([]string,
		error,
	) {
		return s.store.Keys.Ended(ctx, ids)
	}}
	s.api = humago.New(s.mux, apiConfig())
	s.api.UseMiddleware(s.begin, s.authenticate, s.limit, s.readBody, s.keepAnswer)
	for _, routes := range []func(){
		s.conversations, s.messages, s.contexts, s.replies, s.compactions, s.state, s.memory, s.events, s.runs,
		s.oneShot, s.usage, s.settings, s.health,
	} {
		routes()
	}
	finishDocument(s.api.OpenAPI())
	boundRequests(s.api.OpenAPI())
	s.docs()
	s.mcp()
	s.mux.HandleFunc("/", s.unknown)
	s.handler = s.entry(s.hostChecked(s.telemetry.Server(s.mux)))
	return s
}

func apiConfig() huma.Config {
	schemas := huma.NewMapRegistry(refPrefix, schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[Problem](), reflect.TypeFor[wire.Problem]())
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "precis", Version: version.Code(),
				Description: "Durable context compaction for agents. Messages go in and come out byte for byte, " +
					"in the format of the agent's own model API.",
			},
			Components: &huma.Components{
				Schemas: schemas,
				SecuritySchemes: map[string]*huma.SecurityScheme{
					"key": {Type: "http", Scheme: "bearer", Description: "An API key, made by `precis keys " +
						"create`. While there are no keys the server listens on loopback only and needs none."},
				},
			},
			Security: []map[string][]string{{"key": {}}},
		},
		OpenAPIPath:   "/openapi",
		Formats:       map[string]huma.Format{"application/json": jsonFormat, "json": jsonFormat},
		DefaultFormat: "application/json",
	}
}

// Handler returns the handler of all paths.
func (s *Server) Handler() http.Handler { return s.handler }

// unknown answers requests for paths that do not exist and for methods that a path does not have.
func (s *Server) unknown(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{
		http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
		http.MethodDelete,
	} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		problem(service.CodeNotFound, "%s does not exist; /docs lists the paths", r.URL.Path).write(w, r)
		return
	}
	p := problem(codeMethodNotAllowed, "%s has the methods %s, not %s", r.URL.Path, join(allowed), r.Method)
	w.Header().Set("Allow", join(allowed))
	p.write(w, r)
}
