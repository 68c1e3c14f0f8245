package service_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/store/schema"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/stacktest"
	"precis/internal/testkit/vendorserver"
)

const tenant = store.DefaultTenant

type (
	storeRef = store.ConversationRef
	runOuter = wire.Run
)

// newService returns a service on a schema of its own, without Temporal: runs are requested and not executed.
func newService(t testing.TB) *service.Service {
	t.Helper()
	url := stacktest.DatabaseURL(t)
	if err := schema.Migrate(t.Context(), url, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{MaxConns: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &service.Service{Store: s, Config: config.Defaults(), Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
}

// served returns a system with a worker, and its service.
func served(t testing.TB, script vendorserver.Script) (*scenario.System, *service.Service) {
	t.Helper()
	s := scenario.New(t, script)
	s.StartWorker()
	return s, s.Service()
}

// create creates a conversation in OpenAI's format.
func create(t testing.TB, s *service.Service, n service.NewConversation, settings string) store.ConversationRef {
	t.Helper()
	if n.Format == "" {
		n.Format = "openai"
	}
	if n.Model.Vendor == "" {
		n.Model.Vendor, n.Model.Name = "openai", "test-agent"
	}
	if settings != "" {
		n.Settings = json.RawMessage(settings)
	}
	c, created, err := s.CreateConversation(t.Context(), tenant, n)
	if err != nil || !created {
		t.Fatalf("created %t, %v", created, err)
	}
	return store.ConversationRef{Tenant: tenant, ID: c.ID}
}

// window returns a conversation whose model has a context window of that many tokens.
func window(tokens int) service.NewConversation {
	return service.NewConversation{Model: wire.Model{Vendor: "openai", Name: "test-agent", ContextWindow: tokens}}
}

func said(role, text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":%q,"content":%s}`, role, quoted(text)))
}

func user(text string) json.RawMessage      { return said("user", text) }
func assistant(text string) json.RawMessage { return said("assistant", text) }

func toolCall(id string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,`+
		`"type":"function","function":{"name":"cat","arguments":"{}"}}]}`, id))
}

func toolResult(id, text string) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%s}`, id, quoted(text)))
}

func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // a string
	}
	return string(b)
}

// abc returns a text of about n tokens.
func abc(n int) string { return strings.Repeat("abc ", n) }

// usage returns an OpenAI usage object.
func usage(prompt, completion int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d}`, prompt, completion))
}

func appendTo(t testing.TB, s *service.Service, ref store.ConversationRef,
	messages ...json.RawMessage,
) wire.Appended {
	t.Helper()
	return appendWith(t, s, ref, service.AppendRequest{Messages: messages})
}

func appendWith(t testing.TB, s *service.Service, ref store.ConversationRef,
	req service.AppendRequest,
) wire.Appended {
	t.Helper()
	got, err := s.Append(t.Context(), ref, req)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// answered appends an assistant message with the usage of its request.
func answered(t testing.TB, s *service.Service, ref store.ConversationRef, text string, prompt,
	completion int,
) wire.Appended {
	t.Helper()
	return appendWith(t, s, ref, service.AppendRequest{
		Messages: []json.RawMessage{assistant(text)},
		Usage:    usage(prompt, completion),
	})
}

func state(t testing.TB, s *service.Service, ref store.ConversationRef) wire.State {
	t.Helper()
	c, err := s.GetConversation(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return *c.State
}

func contextOf(t testing.TB, s *service.Service, ref store.ConversationRef) wire.Context {
	t.Helper()
	c, err := s.Context(t.Context(), ref, service.ContextRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// sent joins the messages of a context.
func sent(c wire.Context) string {
	var b strings.Builder
	for _, m := range c.Messages {
		b.Write(m)
		b.WriteByte('\n')
	}
	return b.String()
}

// runsOf returns a conversation's runs, newest first.
func runsOf(t testing.TB, s *service.Service, ref store.ConversationRef) []runs.Run {
	t.Helper()
	list, _, err := s.Store.Runs.List(t.Context(), ref.Tenant, runs.Filter{Conversation: ref.ID})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// idle waits until the conversation has no active run, and returns its newest one.
func idle(t testing.TB, sys *scenario.System, ref store.ConversationRef) *runs.Run {
	t.Helper()
	for {
		list := runsOf(t, sys.Service(), ref)
		if len(list) == 0 {
			return nil
		}
		if list[0].Outcome != "" {
			return &list[0]
		}
		got := sys.Wait(list[0])
		if got.Outcome == "" {
			t.Fatalf("run %s has no outcome", got.Ref.ID)
		}
	}
}

func code(t testing.TB, err error, want wire.Code) *service.Error {
	t.Helper()
	e, ok := err.(*service.Error)
	if !ok || e.Code != want {
		t.Fatalf("error %v, wanted %s", err, want)
	}
	return e
}

// steps lists the attempts of all runs of a conversation, for a failed test.
func steps(t testing.TB, sys *scenario.System, ref store.ConversationRef) string {
	t.Helper()
	var b strings.Builder
	for _, r := range runsOf(t, sys.Service(), ref) {
		fmt.Fprintf(&b, "%s %s %s %s\n%s", r.Kind, r.Outcome, r.ErrorKind, r.Reason, sys.Attempts(r))
	}
	return b.String()
}
