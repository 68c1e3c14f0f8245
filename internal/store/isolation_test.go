package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/contract"
	"precis/internal/memory/search"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/internal/store/modelcalls"
	"precis/internal/store/replays"
	"precis/internal/store/runs"
	"precis/internal/store/segments"
	"precis/pipeline"
)

// owned has the ids of one tenant's things, of every kind that another tenant could refer to.
type owned struct {
	ref    store.ConversationRef
	run    store.RunRef
	batch  store.BatchRef
	marker markers.Marker
	reply  string
}

// owns fills a conversation of the default tenant. No other tenant may read "SUM".
func owns(t *testing.T, s *store.Store) owned {
	t.Helper()
	o := owned{ref: newConversation(t, s, "c")}
	appendTurns(t, s, o.ref, 5)
	o.marker = compact(t, s, o.ref, 4, "SUM")
	o.run = request(t, s, o.ref).Ref
	reply, err := s.Replies.Open(t.Context(), o.ref, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	o.reply = reply.ID
	if _, err := s.LiveState.Set(t.Context(), o.ref, "plan", []byte("SUM")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Segments.PutNote(t.Context(), o.ref,
		segments.NewNote{Name: "plan.md", Text: []byte("SUM")}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Attempts.PutResult(t.Context(), o.run, "slim", 1, []byte("SUM")); err != nil {
		t.Fatal(err)
	}
	call := modelcalls.Call{Call: 1, Attempt: 1, Vendor: "v", Model: "m"}
	if _, err := s.ModelCalls.Finish(t.Context(), o.run, call, modelcalls.Result{Answer: []byte("SUM")}); err != nil {
		t.Fatal(err)
	}
	batch, err := s.Batches.Create(t.Context(), store.DefaultTenant, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	o.batch = batch.Ref
	return o
}

// arguments returns what each parameter of a room's method is called with, by its type: mallory's references, with the
// ids of what the other tenant owns, and values that are valid.
func arguments(t *testing.T, o owned) map[reflect.Type]any {
	t.Helper()
	query, err := search.Parse("SUM")
	if err != nil {
		t.Fatal(err)
	}
	values := []any{
		store.ConversationRef{Tenant: "mallory", ID: o.ref.ID},
		store.RunRef{Tenant: "mallory", ID: o.run.ID},
		store.BatchRef{Tenant: "mallory", ID: o.batch.ID},
		[]conversations.NewMessage{message(pipeline.RoleUser, "x")},
		runs.Request{Kind: pipeline.TriggerManual},
		runs.End{Outcome: precis.OutcomeFailed},
		runs.Attempt{Stage: "slim", Call: 1, Attempt: 1, Outcome: contract.AttemptOK},
		markers.Reported{Origin: markers.OriginAgent, CoversTo: 6},
		modelcalls.Call{Call: 1, Attempt: 1, Vendor: "v", Model: "m"},
		segments.NewNote{Name: "x"},
		query, time.Hour, 1, int64(1), []byte("x"),
		[]int64{1},
	}
	byType := map[reflect.Type]any{}
	for _, v := range values {
		byType[reflect.TypeOf(v)] = v
	}
	return byType
}

// names are the texts that methods are called with, where "plan" does not name what the other tenant owns.
func (o owned) names() map[string]string {
	return map[string]string{
		"Markers.Get": o.marker.ID, "Markers.ApplyPrepared": o.marker.ID, "Markers.DiscardPreparedOf": o.run.ID,
		"Replies.Close": o.reply, "Changes.EndReply": o.reply, "Segments.Get": "plan.md", "Segments.Measure": "plan.md",
		"Attempts.Result": "slim", "Attempts.PutResult": "slim", "Attempts.NoteNext": "slim", "Markers.Undo": "",
	}
}

// methodsOf returns the methods of all rooms by "Room.Method".
func methodsOf(s *store.Store) map[string]reflect.Value {
	methods := map[string]reflect.Value{}
	all := reflect.ValueOf(s).Elem()
	for i := range all.NumField() {
		field := all.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		for j := range field.Type.NumMethod() {
			methods[field.Name+"."+field.Type.Method(j).Name] = all.Field(i).Method(j)
		}
	}
	return methods
}

// errorOf calls a method and returns its error. A sequence is read until its first element.
func errorOf(method reflect.Value, in []reflect.Value) error {
	out := method.Call(in)
	switch last := out[len(out)-1].Interface().(type) {
	case error:
		return last
	case iter.Seq2[conversations.Message, error]:
		for _, err := range last {
			return err
		}
	}
	return nil
}

// withoutReference are the methods that take no reference to a conversation, run or batch, and what shows that they
// keep tenants apart. TestTenantsSeeNoLists has the others.
var withoutReference = map[string]string{
	"Artifacts.Get": "TestTenantsSeeNoLists", "Contexts.Snapshot": "TestTenantsSeeNoLists",
	"Conversations.Create": "TestTenantsShareNothing", "Conversations.List": "TestTenantsSeeNoLists",
	"Runs.Count": "TestTenantsSeeNoLists", "Runs.List": "TestTenantsSeeNoLists",
	"Runs.Summarize": "TestTenantsSeeNoLists", "Runs.FindByEnd": "TestFindRun",
	"Batches.Create": "TestTenantsSeeNoLists", "Replays.List": "TestTenantsSeeNoLists",
	"Replays.Count": "TestTenantsSeeNoLists", "ModelCalls.TokensUsed": "TestTenantsSeeNoLists",
	"ModelCalls.UsageBy": "TestTenantsSeeNoLists", "Timeline.Heads": "TestTenantsSeeNoLists",
	"Tenants.ChangeSettings": "TestTenantSettings", "Tenants.Settings": "TestTenantSettings",
	"Tenants.Stored": "TestQuotaOfStorage of internal/api",
	"Tenants.Ensure": "TestTenantsAndKeys", "Tenants.List": "TestTenantsAndKeys", "Keys.List": "TestTenantsAndKeys",
	"Keys.Revoke": "TestTenantsAndKeys", "Keys.Create": "TestTenantsAndKeys", "Keys.Find": "TestTenantsAndKeys",
	"Keys.Any":       "of the whole installation: yes or no",
	"Keys.CreateKey": "TestTenantsAndKeys, which calls it by Create",
	"Keys.Ended":     "for the server: of ids of keys that it has authenticated, which no longer work",
	// A key belongs to the tenant that its request names.
	"Idempotency.Claim": "TestKeyedRequests", "Idempotency.Extend": "TestKeyedRequests",
	"Idempotency.Answer": "TestKeyedRequests", "Idempotency.Release": "TestKeyedRequests",
	"Breakers.Get": "TestBreaker", "Breakers.Pass": "TestBreaker", "Breakers.Trip": "TestBreaker",
	"Breakers.Reset": "TestBreaker", "Breakers.Blocked": "TestBreakerOfAModelIsATenantsOwn",
	"Breakers.Failed":   "TestBreakerOfAModelIsATenantsOwn",
	"Breakers.Answered": "TestBreakerOfAModelThatIsDown",
	"Exports.Import":    "TestImportBelongsToItsTenant of internal/audit",
	"Segments.Claim":    "a worker's, for all tenants", "Segments.Done": "a worker's, for all tenants",
	"Segments.Later": "a worker's, for all tenants", "Outbox.Claim": "a worker's, for all tenants",
	"Outbox.MarkDispatched": "a worker's, for all tenants", "Outbox.Postpone": "a worker's, for all tenants",
	"Outbox.Revive": "a worker's, for all tenants", "Retention.ForgetAbandoned": "a worker's, for all tenants",
	"Evidence.After": "an auditor's, for all tenants", "Evidence.Count": "an auditor's, for all tenants",
	"Evidence.Heads": "an auditor's, for all tenants",
	"Jobs.Get":       "an auditor's, for all tenants", "Jobs.Keep": "an auditor's, for all tenants",
	"Jobs.End": "an auditor's, for all tenants",
}

// Another tenant's things do not exist for a tenant. The test calls every method of every room that takes a reference;
// methods that take none are listed with the test that covers them. A new method fails here until it is listed.
func TestTenantsNeverMeet(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.Tenants.Ensure(t.Context(), "mallory", ""); err != nil {
		t.Fatal(err)
	}
	o := owns(t, s)
	before := contextOf(t, s, o.ref)
	values, names := arguments(t, o), o.names()
	listed := map[string]bool{}
	for name, method := range methodsOf(s) {
		in, refers := []reflect.Value{}, false
		for i := range method.Type().NumIn() {
			param := method.Type().In(i)
			switch v, ok := values[param]; {
			case param == reflect.TypeFor[context.Context]():
				in = append(in, reflect.ValueOf(t.Context()))
			case param.Kind() == reflect.String && param.PkgPath() == "":
				text, given := names[name]
				if !given {
					text = "plan"
				}
				in = append(in, reflect.ValueOf(text))
			case ok:
				in = append(in, reflect.ValueOf(v))
			default:
				in = append(in, reflect.Zero(param))
			}
			switch param {
			case reflect.TypeFor[store.ConversationRef](), reflect.TypeFor[store.RunRef](),
				reflect.TypeFor[store.BatchRef]():
				refers = true
			}
		}
		if !refers {
			if listed[name] = true; withoutReference[name] == "" {
				t.Errorf("%s takes no reference: which test shows that it keeps tenants apart?", name)
			}
			continue
		}
		t.Run(name, func(t *testing.T) {
			switch err := errorOf(method, in); {
			case !errors.Is(err, store.ErrNotFound):
				t.Errorf("%s with another tenant's reference: error %v, want %v", name, err, store.ErrNotFound)
			case strings.Contains(err.Error(), "SUM"):
				t.Errorf("%s shows another tenant's content: %v", name, err)
			}
		})
	}
	for name := range withoutReference {
		if !listed[name] {
			t.Errorf("%s takes a reference or does not exist: take it off the list", name)
		}
	}
	if after := contextOf(t, s, o.ref); after != before {
		t.Errorf("the context was %s and is %s", before, after)
	}
}

// Lists and sums have nothing of another tenant.
func TestTenantsSeeNoLists(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.Tenants.Ensure(t.Context(), "mallory", ""); err != nil {
		t.Fatal(err)
	}
	o := owns(t, s)
	for name, list := range map[string]func(ctx context.Context) (int, error){
		"Conversations.List": func(ctx context.Context) (int, error) {
			list, _, err := s.Conversations.List(ctx, "mallory", "", 0)
			return len(list), err
		},
		"Runs.Count": func(ctx context.Context) (int, error) {
			list, err := s.Runs.Count(ctx, "mallory", runs.Filter{})
			return len(list), err
		},
		"Runs.List": func(ctx context.Context) (int, error) {
			list, _, err := s.Runs.List(ctx, "mallory", runs.Filter{})
			return len(list), err
		},
		"Runs.Summarize": func(ctx context.Context) (int, error) {
			list, err := s.Runs.Summarize(ctx, "mallory", runs.Filter{})
			return len(list), err
		},
		"Replays.List": func(ctx context.Context) (int, error) {
			list, _, err := s.Replays.List(ctx, "mallory", replays.Filter{}, "", 0)
			return len(list), err
		},
		"Replays.Count": func(ctx context.Context) (int, error) {
			return s.Replays.Count(ctx, "mallory", replays.Filter{})
		},
		"ModelCalls.TokensUsed": func(ctx context.Context) (int, error) {
			n, err := s.ModelCalls.TokensUsed(ctx, "mallory", time.Time{})
			return int(n), err
		},
		"ModelCalls.UsageBy": func(ctx context.Context) (int, error) {
			list, err := s.ModelCalls.UsageBy(ctx, "mallory", "model", time.Time{})
			return len(list), err
		},
		"Timeline.Heads": func(ctx context.Context) (int, error) {
			heads, err := s.Timeline.Heads(ctx, []store.ConversationRef{{Tenant: "mallory", ID: o.ref.ID}})
			return len(heads), err
		},
	} {
		t.Run(name, func(t *testing.T) {
			if n, err := list(t.Context()); n != 0 || err != nil {
				t.Errorf("mallory sees %d of another tenant's, error %v", n, err)
			}
		})
	}
	for name, err := range map[string]error{
		"Artifacts.Get":     failure(s.Artifacts.Get(t.Context(), "mallory", o.marker.Summary)),
		"Contexts.Snapshot": failure(s.Contexts.Snapshot(t.Context(), "mallory", o.marker.Summary)),
		"Batches.Create":    failure(s.Batches.Create(t.Context(), "nobody", nil, 0)),
	} {
		if !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: error %v, want %v", name, err, store.ErrNotFound)
		}
	}
}

func failure[T any](_ T, err error) error { return err }

// A conversation of the same id in another tenant is a different one with its own artifacts, and its runs cannot refer
// to those of the first.
func TestTenantsShareNothing(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if _, err := s.Tenants.Ensure(t.Context(), "mallory", ""); err != nil {
		t.Fatal(err)
	}
	o := owns(t, s)
	before := contextOf(t, s, o.ref)
	conv := store.ConversationRef{Tenant: "mallory", ID: o.ref.ID}
	c, created, err := s.Conversations.Create(t.Context(), "mallory",
		conversations.NewConversation{ID: conv.ID, Format: "anthropic"})
	if err != nil || !created || c.HeadSeq != 0 {
		t.Fatalf("created %t, head %d, %v", created, c.HeadSeq, err)
	}
	appendTurns(t, s, conv, 1)
	if _, _, err := s.Runs.Request(t.Context(), conv,
		runs.Request{Kind: pipeline.TriggerManual, ReplayOf: o.run.ID}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a replay of another tenant's run: error %v", err)
	}
	theirs := request(t, s, conv)
	v, err := s.Contexts.Read(t.Context(), conv, contexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n := markers.NewMarker{
		CoversFrom: 1, CoversTo: 1, CoveredMessages: 1, CoveredChain: v.Tail[0].Chain, Summary: o.marker.Summary,
	}
	if _, err := s.Markers.Apply(t.Context(), theirs.Ref, n, runs.Facts{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a marker with another tenant's summary: error %v", err)
	}
	a, err := s.Artifacts.Put(t.Context(), conv, "summary", json.RawMessage("SUM"))
	if err != nil {
		t.Fatal(err)
	}
	n.Base, n.Summary = o.marker.ID, a.SHA256
	if _, err := s.Markers.Apply(t.Context(), theirs.Ref, n, runs.Facts{}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a marker on another tenant's marker: error %v", err)
	}
	if after := contextOf(t, s, o.ref); after != before {
		t.Errorf("the context was %s and is %s", before, after)
	}
}
