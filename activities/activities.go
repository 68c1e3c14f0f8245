// Package activities has the six stages of a run as Temporal activities, one file a stage. Each loads by reference,
// calls the pipeline, stores the result and returns a reference. A result is stored under (run, stage, call) before
// the activity returns, so that a retry after a crash finds it and does no work twice.
//
//	trigger.go      1. is a compaction due?
//	summarizer.go   2. who writes the summary?
//	partition.go    3. what is summarized, what stays?
//	slim.go         4. the summarizer's input
//	summarize.go    5. the model call, the digest, the checks
//	reassemble.go   6. the new context, and the marker
//	finish.go       closing a run that applied nothing
//	attempt.go      around each stage: heartbeats, the record of the attempt, its stored result, error kinds
//	turns.go        how tenants share the cores of a worker
//	load.go         the conversation as the attempt sees it
//	record.go       what a replay reads from the record of its original; compare.go, replay.go: how the two differ
//	child.go        for a workflow that has a run as its child
//	bulk.go         for a batch of replays
package activities

import (
	"fmt"
	"log/slog"
	"runtime"
	"time"

	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/fair"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/internal/telemetry"
	"precis/internal/version"
)

// Activities holds what the stages need. Its exported methods are the activities.
type Activities struct {
	Store  *store.Store
	Config config.Config
	// Log is for what an operator has to know; run_attempts has the rest.
	Log *slog.Logger
	// Worker names this process and its build in run_attempts.
	Worker string
	// Metrics measures the stages; nil measures nothing.
	Metrics *telemetry.Metrics

	clients      map[string]llm.Client
	turns        *fair.Queue
	installation conversation.Installation
}

// New makes the activities. A vendor that the configuration describes wrongly is an error here, and not in
// the middle of a run. tel, which may be nil, measures them and traces their requests to vendors.
func New(s *store.Store, c config.Config, log *slog.Logger, worker string,
	tel *telemetry.Telemetry,
) (*Activities, error) {
	a := &Activities{
		Store: s, Config: c, Log: log, Worker: worker + " " + version.Code(), Metrics: tel.Metrics(),
		clients: map[string]llm.Client{}, installation: conversation.InstallationOf(c),
		turns: fair.New(runtime.GOMAXPROCS(0)),
	}
	for name, v := range c.Vendors {
		if v.BaseURL == "" {
			continue
		}
		client, err := llm.New(llm.Vendor{
			Name: name, Type: v.Type, BaseURL: v.BaseURL, APIKey: v.APIKey,
			Headers: v.Headers, Models: a.installation.Models, Transport: tel.Transport,
		})
		if err != nil {
			return nil, fmt.Errorf("vendors.%s: %w", name, err)
		}
		a.clients[name] = client
	}
	return a, nil
}

// client returns the vendor's client, or the reason why there is none: a vendor at its public address cannot be
// called without a key.
func (a *Activities) client(vendor string) (llm.Client, string) {
	v, ok := a.Config.Vendors[vendor]
	switch c := a.clients[vendor]; {
	case !ok || c == nil:
		return nil, fmt.Sprintf("vendor %q is not configured (vendors.%s)", vendor, vendor)
	case v.APIKey == "" && isDefaultURL(vendor, v.BaseURL):
		return nil, fmt.Sprintf("no API key for %s (vendors.%s.api_key)", vendor, vendor)
	default:
		return c, ""
	}
}

// isDefaultURL reports whether the address is the vendor's public one, which requires a key; a private server may not.
func isDefaultURL(vendor, url string) bool {
	return config.Defaults().Vendors[vendor].BaseURL == url
}

// modelTimeout bounds one request to a model.
func (a *Activities) modelTimeout() time.Duration {
	return time.Duration(a.Config.Worker.ModelTimeoutSeconds) * time.Second
}

func conversationOf(r contract.Ref) store.ConversationRef {
	return store.ConversationRef{Tenant: r.Tenant, ID: r.Conversation}
}

func runOf(r contract.Ref) store.RunRef { return store.RunRef{Tenant: r.Tenant, ID: r.Run} }
