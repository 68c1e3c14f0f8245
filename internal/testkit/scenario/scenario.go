// Package scenario brings the whole system up for a test: a schema and a namespace of its own, a vendor that
// the test scripts, a worker. Nothing in it is simulated but the model.
package scenario

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"

	"precis"
	"precis/internal/config"
	"precis/internal/contract"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
	"precis/internal/store/schema"
	"precis/internal/telemetry"
	"precis/internal/temporalclient"
	"precis/internal/testkit/stacktest"
	"precis/internal/testkit/vendorserver"
	"precis/internal/worker"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// Tenant is whom the conversations of a scenario belong to.
const Tenant = store.DefaultTenant

// System is everything that a scenario runs on.
type System struct {
	T      testing.TB
	Store  *store.Store
	Client client.Client
	Vendor *vendorserver.Server
	Config config.Config
	Log    *slog.Logger
	// Telemetry measures and traces the workers, nil: nothing does. See Observe.
	Telemetry *telemetry.Telemetry

	mu   sync.Mutex
	stop func()
}

// New brings a system up, without a worker. Vendors "anthropic" and "openai" are the scripted server, with a
// key; the default summarizer list is the agent's own model.
func New(t testing.TB, script vendorserver.Script) *System {
	t.Helper()
	return On(t, stacktest.DatabaseURL(t), script)
}

// On is New on a database that exists: it is migrated to the newest schema and keeps its rows.
func On(t testing.TB, databaseURL string, script vendorserver.Script) *System {
	t.Helper()
	ctx := t.Context()
	s := &System{
		T: t, Vendor: vendorserver.New(t, script),
		Log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	s.Config = config.Defaults()
	s.Config.DatabaseURL = databaseURL
	s.Config.Temporal.Address, s.Config.Temporal.Namespace = stacktest.Temporal(t)
	s.Config.Vendors["anthropic"] = config.Vendor{
		Type: contract.ProtocolAnthropic, BaseURL: s.Vendor.URL,
		APIKey: "test-key",
	}
	s.Config.Vendors["openai"] = config.Vendor{
		Type: contract.ProtocolOpenAI, BaseURL: s.Vendor.OpenAIURL(),
		APIKey: "test-key",
	}
	s.Config.Worker.ModelTimeoutSeconds = 20
	s.Config.Worker.DrainSeconds = 1

	if err := schema.Migrate(ctx, s.Config.DatabaseURL, func(string) {}); err != nil {
		t.Fatal(err)
	}
	var err error
	if s.Store, err = store.Open(ctx, s.Config.DatabaseURL, store.Options{MaxConns: 8}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Store.Close)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	if s.Client, err = temporalclient.Dial(ctx, s.Config.Temporal, quiet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Client.Close)
	return s
}

// Observe measures and traces what is done from here on: the client is another one, and workers that are started later
// report to tel.
func (s *System) Observe(tel *telemetry.Telemetry) {
	s.T.Helper()
	client, err := temporalclient.Dial(s.T.Context(), s.Config.Temporal, slog.New(slog.DiscardHandler), tel.Temporal)
	if err != nil {
		s.T.Fatal(err)
	}
	s.T.Cleanup(client.Close)
	s.Client, s.Telemetry = client, tel
}

// testWriter logs into the test, and nowhere once that has ended.
type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	if w.t.Context().Err() == nil {
		w.t.Log(strings.TrimRight(string(p), "\n"))
	}
	return len(p), nil
}

// StartWorker runs a worker in this process until the test ends or StopWorker is called.
func (s *System) StartWorker() {
	s.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		ended <- worker.Run(ctx, worker.Options{
			Store: s.Store, Client: s.Client, Config: s.Config, Log: s.Log,
			Telemetry: s.Telemetry, Ready: func() { close(ready) },
		})
	}()
	select {
	case <-ready:
	case err := <-ended:
		cancel()
		s.T.Fatalf("the worker did not start: %v", err)
	}
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				s.T.Errorf("the worker ended: %v", err)
			}
		})
	}
	s.mu.Lock()
	s.stop = stop
	s.mu.Unlock()
	s.T.Cleanup(stop)
}

// StopWorker stops the worker that was started last, as a deploy does.
func (s *System) StopWorker() {
	s.mu.Lock()
	stop := s.stop
	s.mu.Unlock()
	stop()
}

// Conversation says what a test's conversation is like.
type Conversation struct {
	Format   transcript.Format
	Vendor   string
	Model    string
	Window   int
	System   json.RawMessage
	Tools    json.RawMessage
	Settings map[string]any
	// Messages are native JSON, in order.
	Messages []string
}

// Create stores a conversation with its messages.
func (s *System) Create(c Conversation) store.ConversationRef {
	s.T.Helper()
	if c.Format == "" {
		c.Format = transcript.Anthropic
	}
	if c.Vendor == "" {
		c.Vendor = "anthropic"
	}
	if c.Model == "" {
		c.Model = "test-agent"
	}
	var settings json.RawMessage
	if c.Settings != nil {
		var err error
		if settings, err = json.Marshal(c.Settings); err != nil {
			s.T.Fatal(err)
		}
	}
	created, _, err := s.Store.Conversations.Create(s.T.Context(), Tenant, conversations.NewConversation{
		Format: string(c.Format), Vendor: c.Vendor, Model: c.Model, Window: c.Window,
		System: c.System, Tools: c.Tools, Settings: settings,
	})
	if err != nil {
		s.T.Fatal(err)
	}
	s.Append(created.Ref, c.Messages...)
	return created.Ref
}

// Append adds native messages.
func (s *System) Append(ref store.ConversationRef, natives ...string) {
	s.T.Helper()
	c, err := s.Store.Conversations.Get(s.T.Context(), ref)
	if err != nil {
		s.T.Fatal(err)
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	if err != nil {
		s.T.Fatal(err)
	}
	var batch []conversations.NewMessage
	for _, native := range natives {
		m, err := codec.Decode([]byte(native))
		if err != nil {
			s.T.Fatalf("%s: %v", native, err)
		}
		stored := conversation.Stored(m)
		stored.ClientID = ""
		batch = append(batch, stored)
	}
	if _, err := s.Store.Changes.Append(s.T.Context(), ref, batch, changes.AppendOptions{}); err != nil {
		s.T.Fatal(err)
	}
}

// Request asks for a run; Kind is manual unless it says otherwise.
func (s *System) Request(ref store.ConversationRef, req runs.Request) runs.Run {
	s.T.Helper()
	if req.Kind == "" {
		req.Kind = pipeline.TriggerManual
	}
	run, _, err := s.Store.Runs.Request(s.T.Context(), ref, req)
	if err != nil {
		s.T.Fatal(err)
	}
	return run
}

// Wait waits for the end of a run and reads it.
func (s *System) Wait(run runs.Run) runs.Run {
	s.T.Helper()
	return s.WaitFor(run, 60*time.Second)
}

// WaitFor is Wait with a limit of its own.
func (s *System) WaitFor(run runs.Run, limit time.Duration) runs.Run {
	s.T.Helper()
	ctx, cancel := context.WithTimeout(s.T.Context(), limit)
	defer cancel()
	if _, err := precis.Wait(ctx, s.Client, s.Launch(run)); err != nil {
		s.T.Fatalf("run %s: %v\n%s", run.Ref.ID, err, s.Steps(run))
	}
	return s.Run(run)
}

// Run reads a run with its steps.
func (s *System) Run(run runs.Run) runs.Run {
	s.T.Helper()
	got, err := s.Store.Runs.Get(s.T.Context(), run.Ref)
	if err != nil {
		s.T.Fatal(err)
	}
	return got
}

// Launch is how the run's workflow is started.
func (s *System) Launch(run runs.Run) precis.Launch {
	return precis.Launch{Input: run.Input(), TaskQueue: s.Config.Worker.TaskQueue, Trigger: run.Kind}
}

// Compact asks for a run and waits for its end.
func (s *System) Compact(ref store.ConversationRef, req runs.Request) runs.Run {
	s.T.Helper()
	return s.Wait(s.Request(ref, req))
}

// View is the conversation as it stands.
func (s *System) View(ref store.ConversationRef) conversation.View {
	s.T.Helper()
	v, err := conversation.Load(s.T.Context(), s.Store, ref, conversation.InstallationOf(s.Config), 0)
	if err != nil {
		s.T.Fatal(err)
	}
	return v
}

// Context is what the model sees, one native message each.
func (s *System) Context(ref store.ConversationRef) []string {
	s.T.Helper()
	v := s.View(ref)
	messages, err := transcript.EncodeItems(v.Codec, v.Context().Items)
	if err != nil {
		s.T.Fatal(err)
	}
	out := make([]string, len(messages))
	for i, m := range messages {
		out[i] = string(m)
	}
	return out
}

// Steps tells the way of a run, for a failed test's output and for comparisons: a line an attempt.
func (s *System) Steps(run runs.Run) string {
	var b strings.Builder
	for _, step := range s.Run(run).Attempts {
		fmt.Fprintf(&b, "%-10s #%d.%d %-16s %-24s %s %s %s → %s\n", step.Stage, step.Call, step.Attempt, step.Rung,
			step.Summarizer, step.Outcome, step.ErrorKind, step.Message, step.Next)
	}
	return b.String()
}

// Path is the way down the ladder in short: "summarizer:kind→step" for every failure that the ladder answered.
func (s *System) Path(run runs.Run) []string {
	var path []string
	for _, step := range s.Run(run).Attempts {
		if step.Next != "" {
			kind := step.ErrorKind
			if kind == "" { // the stage itself went well, and what it found was not
				var numbers struct {
					Kind pipeline.ErrorKind `json:"kind"`
				}
				if err := json.Unmarshal(step.Numbers, &numbers); err != nil {
					s.T.Fatal(err)
				}
				kind = numbers.Kind
			}
			path = append(path, fmt.Sprintf("%s:%s→%s", step.Summarizer, kind, step.Next))
		}
	}
	return path
}

// History reads the workflow history of a run.
func (s *System) History(run runs.Run) *history.History {
	s.T.Helper()
	run = s.Run(run)
	return s.historyOf(run.WorkflowID, run.TemporalRunID)
}

// HistoryOf reads the history of a workflow's last execution.
func (s *System) HistoryOf(workflowID string) *history.History {
	s.T.Helper()
	return s.historyOf(workflowID, "")
}

func (s *System) historyOf(workflowID, execution string) *history.History {
	s.T.Helper()
	it := s.Client.GetWorkflowHistory(s.T.Context(), workflowID, execution, false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	h := &history.History{}
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			s.T.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}
