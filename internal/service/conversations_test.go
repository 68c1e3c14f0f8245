package service_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/pipeline"
)

func TestCreateConversation(t *testing.T) {
	t.Parallel()
	s := newService(t)
	body := service.NewConversation{
		ID: "c1", Format: "anthropic", Model: wire.Model{Vendor: "anthropic", Name: "claude-sonnet-4-5"},
		System: json.RawMessage(`"s"`), Settings: json.RawMessage(`{"trigger":{"fraction":0.5}}`),
		Metadata: json.RawMessage(`{"a":1}`),
	}
	c, created, err := s.CreateConversation(t.Context(), tenant, body)
	if err != nil || !created || c.ID != "c1" || c.State.Trigger.Window != 200000 || c.State.Trigger.Limit != 100000 ||
		c.State.Trigger.WindowGuessed {
		t.Fatalf("%+v, %t, %v", c, created, err)
	}
	again, created, err := s.CreateConversation(t.Context(), tenant, body)
	if err != nil || created || again.ID != "c1" {
		t.Errorf("%+v, %t, %v", again, created, err)
	}
	body.Metadata = nil
	_, _, err = s.CreateConversation(t.Context(), tenant, body)
	code(t, err, service.CodeConflict)

	for field, n := range map[string]service.NewConversation{
		"format":   {Format: "morse"},
		"system":   {Format: "openai", System: json.RawMessage(`7`)},
		"tools":    {Format: "openai", Tools: json.RawMessage(`{}`)},
		"metadata": {Format: "openai", Metadata: json.RawMessage(`[]`)},
		"settings": {Format: "openai", Settings: json.RawMessage(`{"nope":1}`)},
		"settings.trigger.fraction": {
			Format:   "openai",
			Settings: json.RawMessage(`{"trigger":{"fraction":1.5}}`),
		},
		"settings.trigger.token_limit": {
			Format: "openai", Model: wire.Model{ContextWindow: 1000},
			Settings: json.RawMessage(`{"trigger":{"token_limit":2000}}`),
		},
		"settings.trigger.turns": {Format: "openai", Settings: json.RawMessage(`{"trigger":{"turns":-1}}`)},
		"settings.trigger.apply": {
			Format:   "openai",
			Settings: json.RawMessage(`{"trigger":{"apply":{"unused_percent":0.1}}}`),
		},
		"settings.tenant_daily_token_budget": {
			Format:   "openai",
			Settings: json.RawMessage(`{"tenant_daily_token_budget":5}`),
		},
	} {
		_, _, err := s.CreateConversation(t.Context(), tenant, n)
		if e := code(t, err, service.CodeInvalid); e.Field != field || e.Detail == "" {
			t.Errorf("field %q %q, wanted %q", e.Field, e.Detail, field)
		}
	}
	_, _, err = s.CreateConversation(t.Context(), tenant, service.NewConversation{ID: "a\nb", Format: "openai"})
	code(t, err, service.CodeInvalid)
	_, _, err = s.CreateConversation(t.Context(), "nobody", service.NewConversation{Format: "openai"})
	code(t, err, service.CodeNotFound)
}

func TestListConversations(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for i := range 5 {
		create(t, s, service.NewConversation{ID: fmt.Sprintf("c%d", i)}, "")
	}
	var seen []string
	for cursor, pages := "", 0; pages == 0 || cursor != ""; pages++ {
		list, next, err := s.ListConversations(t.Context(), tenant, cursor, 2)
		if err != nil || pages > 3 {
			t.Fatal(err)
		}
		for _, c := range list {
			seen = append(seen, c.ID)
		}
		cursor = next
	}
	if strings.Join(seen, " ") != "c4 c3 c2 c1 c0" {
		t.Errorf("%q", seen)
	}
	_, _, err := s.ListConversations(t.Context(), tenant, "nonsense", 2)
	code(t, err, service.CodeInvalid)
}

func TestPatchConversation(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, window(50000), `{"trigger":{"auto":false},"digest":"never"}`)
	tools := json.RawMessage(`[{"type":"function"}]`)
	c, err := s.PatchConversation(t.Context(), ref, service.ConversationPatch{
		Tools: &tools, Settings: json.RawMessage(`{"trigger":{"token_limit":5000},"digest":null}`),
		Metadata: json.RawMessage(`{"k":"v"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(c.Settings) != `{"trigger":{"auto":false,"token_limit":5000}}` || string(c.Metadata) != `{"k":"v"}` ||
		string(c.Tools) != string(tools) || c.Model.ContextWindow != 50000 {
		t.Errorf("%+v", c)
	}
	null := json.RawMessage(`null`)
	if c, err = s.PatchConversation(t.Context(), ref, service.ConversationPatch{Tools: &null}); err != nil ||
		c.Tools != nil {
		t.Errorf("%s, %v", c.Tools, err)
	}
	name, tokens := "gpt-6", 9000
	if c, err = s.PatchConversation(t.Context(), ref,
		service.ConversationPatch{Model: &service.ModelPatch{Name: &name}}); err != nil || c.Model.Name != name ||
		c.Model.Vendor != "openai" || c.Model.ContextWindow != 0 {
		t.Errorf("%+v, %v", c.Model, err)
	}
	if c, err = s.PatchConversation(t.Context(), ref,
		service.ConversationPatch{Model: &service.ModelPatch{ContextWindow: &tokens}}); err != nil ||
		c.Model.ContextWindow != 9000 || c.Model.Name != name {
		t.Errorf("%+v, %v", c.Model, err)
	}
	_, err = s.PatchConversation(t.Context(), ref,
		service.ConversationPatch{Settings: json.RawMessage(`{"trigger":{"token_limit":10000}}`)})
	if e := code(t, err, service.CodeInvalid); e.Field != "settings.trigger.token_limit" {
		t.Errorf("field %q", e.Field)
	}
	_, err = s.PatchConversation(t.Context(), storeRef{Tenant: tenant, ID: "nope"}, service.ConversationPatch{})
	code(t, err, service.CodeNotFound)
}

// A tenant's settings stand between the installation's and the conversation's.
func TestTenantSettingsCount(t *testing.T) {
	t.Parallel()
	s := newService(t)
	if _, err := s.SetTenantSettings(t.Context(), tenant,
		json.RawMessage(`{"trigger":{"fraction":0.5},"digest":"never"}`), false); err != nil {
		t.Fatal(err)
	}
	if st := state(t, s, create(t, s, window(10000), "")); st.Trigger.Limit != 5000 {
		t.Errorf("%+v", st.Trigger)
	}
	if st := state(t, s, create(t, s, window(10000), `{"trigger":{"fraction":0.7}}`)); st.Trigger.Limit != 7000 {
		t.Errorf("%+v", st.Trigger)
	}
	// Stored settings that this program does not take keep nobody from the conversation.
	ref := create(t, s, window(10000), "")
	bad := json.RawMessage(`{"from_another_version":true}`)
	if _, err := s.Store.Changes.Update(t.Context(), ref, conversations.Patch{Settings: &bad}); err != nil {
		t.Fatal(err)
	}
	if got := appendTo(t, s, ref, user("u")); got.LastSeq != 1 {
		t.Errorf("%+v", got)
	}
	if got, err := s.Context(t.Context(), ref, service.ContextRequest{}); err != nil || len(got.Messages) != 1 ||
		got.Stats.Limit != 5000 {
		t.Errorf("%+v, %v", got, err)
	}
}

// The nearest one counts: all < tenant < conversation, key by key. Of a run those count that did when it was asked for.
func TestTheNearestSettingCounts(t *testing.T) {
	t.Parallel()
	s := newService(t)
	s.Config.Settings.Trigger.Fraction, s.Config.Settings.Digest, s.Config.Settings.SummaryMaxTokens = 0.8,
		pipeline.DigestAlways, 4000
	if _, err := s.SetTenantSettings(t.Context(), tenant,
		json.RawMessage(`{"digest":"never","summary_max_tokens":5000}`), false); err != nil {
		t.Fatal(err)
	}
	ref := create(t, s, window(10000), `{"summary_max_tokens":6000}`)
	appendTo(t, s, ref, user("u1"), assistant(abc(4000)), user("u2"))
	run, _, err := s.Compact(t.Context(), ref, service.CompactRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.PatchTenantSettings(t.Context(), tenant,
		[]json.RawMessage{[]byte(`{"digest":null}`), []byte(`{"trigger":{"turns":7}}`)}, false); err != nil {
		t.Fatal(err)
	}
	stored, err := s.Store.Runs.Get(t.Context(), store.RunRef{Tenant: tenant, ID: run.ID})
	if err != nil {
		t.Fatal(err)
	}
	var kept config.Settings
	if err := json.Unmarshal(stored.Settings, &kept); err != nil {
		t.Fatal(err)
	}
	if kept.Trigger.Fraction != 0.8 || kept.Digest != pipeline.DigestNever || kept.SummaryMaxTokens != 6000 ||
		kept.Trigger.Turns != pipeline.SelfSummaryNumTurns {
		t.Errorf("the run has %+v", kept)
	}
	got, err := s.TenantSettings(t.Context(), tenant)
	if err != nil || string(got.Settings) != `{"summary_max_tokens":5000,"trigger":{"turns":7}}` {
		t.Errorf("%s, %v", got.Settings, err)
	}
	var now config.Settings
	if err := json.Unmarshal(got.Effective, &now); err != nil || now.Digest != pipeline.DigestAlways ||
		now.Trigger.Turns != 7 || now.SummaryMaxTokens != 5000 || now.Trigger.Fraction != 0.8 {
		t.Errorf("%+v, %v", now, err)
	}
}

func TestTenantSettingsAreChecked(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for _, tt := range []struct{ settings, field, says string }{
		{`{"trigger":{"fraction":7}}`, "settings.trigger.fraction", "share"},
		{`{"trigger":{"fraction":"most"}}`, "settings.trigger.fraction", "string"},
		{`{"trigger":{"fractoin":0.5}}`, "settings", `"fractoin"`},
		{`{"summarizers":["self","nobody"]}`, "settings.summarizers[1].model", "nobody"},
		{`{"digest":"sometimes"}`, "settings.digest", "when_needed"},
		{`["digest"]`, "settings", "object"},
		{`7`, "settings", "object"},
	} {
		_, err := s.SetTenantSettings(t.Context(), tenant, json.RawMessage(tt.settings), true)
		if e := code(t, err, service.CodeInvalid); e.Field != tt.field || !strings.Contains(e.Detail, tt.says) {
			t.Errorf("%s: field %q, %s", tt.settings, e.Field, e.Detail)
		}
	}
	if got, err := s.TenantSettings(t.Context(), tenant); err != nil || string(got.Settings) != `{}` {
		t.Errorf("what was refused is %s, %v", got.Settings, err)
	}
	_, err := s.TenantSettings(t.Context(), "nobody")
	code(t, err, service.CodeNotFound)

	// The budget of a day is the operator's: others keep it, and change nothing of it.
	budget := json.RawMessage(`{"tenant_daily_token_budget":1000}`)
	if _, err := s.SetTenantSettings(t.Context(), tenant, budget, true); err != nil {
		t.Fatal(err)
	}
	for _, settings := range []string{`{}`, `{"tenant_daily_token_budget":2000}`} {
		_, err := s.SetTenantSettings(t.Context(), tenant, json.RawMessage(settings), false)
		if e := code(t, err, service.CodeForbidden); e.Field != "settings.tenant_daily_token_budget" {
			t.Errorf("%s: field %q", settings, e.Field)
		}
	}
	if _, err := s.PatchTenantSettings(t.Context(), tenant, []json.RawMessage{[]byte(`{"digest":"never"}`)},
		false); err != nil {
		t.Error(err)
	}
}

func TestAppend(t *testing.T) {
	t.Parallel()
	s := newService(t)
	ref := create(t, s, window(10000), "")
	got := appendWith(t, s, ref, service.AppendRequest{
		Messages: []json.RawMessage{user("a"), user("b"), user("reminder")},
		Meta:     []service.Meta{{ID: "m1"}, {ID: "m2"}, {Kind: "reminder"}},
	})
	if got.FirstSeq != 1 || got.LastSeq != 3 || got.HeadSeq != 3 || got.Trigger.Turns != 1 {
		t.Errorf("%+v", got)
	}
	got = appendWith(t, s, ref, service.AppendRequest{
		Messages: []json.RawMessage{user("b"), user("c")},
		Meta:     []service.Meta{{ID: "m2"}, {ID: "m3"}},
	})
	if got.FirstSeq != 4 || got.LastSeq != 4 || got.Duplicates != 1 || got.Seqs[0] != 2 || got.Seqs[1] != 4 {
		t.Errorf("%+v", got)
	}
	three := int64(3)
	_, err := s.Append(t.Context(), ref, service.AppendRequest{Messages: []json.RawMessage{user("x")}, IfSeq: &three})
	code(t, err, service.CodeStale)
	for field, req := range map[string]service.AppendRequest{
		"messages":     {},
		"messages[1]":  {Messages: []json.RawMessage{user("x"), json.RawMessage(`{"role":"nobody"}`)}},
		"messages[0]":  {Messages: []json.RawMessage{json.RawMessage(`"text"`)}},
		"meta":         {Messages: []json.RawMessage{user("x")}, Meta: make([]service.Meta, 2)},
		"meta[0].kind": {Messages: []json.RawMessage{user("x")}, Meta: []service.Meta{{Kind: "summary"}}},
	} {
		_, err := s.Append(t.Context(), ref, req)
		if e := code(t, err, service.CodeInvalid); e.Field != field {
			t.Errorf("field %q, wanted %q", e.Field, field)
		}
	}
	_, err = s.Append(t.Context(), ref,
		service.AppendRequest{Messages: []json.RawMessage{assistant("x")}, Meta: []service.Meta{{Kind: "reminder"}}})
	code(t, err, service.CodeInvalid)
	_, err = s.Append(t.Context(), storeRef{Tenant: "other", ID: ref.ID},
		service.AppendRequest{Messages: []json.RawMessage{user("x")}})
	code(t, err, service.CodeNotFound)
	if n := heads(t, s, ref); n != 4 {
		t.Errorf("%d messages", n)
	}
	// A figure alone is one too, of what is there.
	if got := appendWith(t, s, ref, service.AppendRequest{Usage: usage(321, 1)}); got.UsedTokens != 322 ||
		got.Estimated {
		t.Errorf("%+v", got)
	}
}

func TestUsageObjects(t *testing.T) {
	t.Parallel()
	s := newService(t)
	for raw, want := range map[string]int{
		`{"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":3000,"output_tokens":50}`:      3170,
		`{"input_tokens":100,"cache_creation_input_tokens":null,"output_tokens":50}`:                                   150,
		`{"prompt_tokens":100,"completion_tokens":50,"total_tokens":150,"prompt_tokens_details":{"cached_tokens":90}}`: 150,
		`{"prompt_tokens":100,"completion_tokens":50}`:                                                                 150,
		`{"input_tokens":100,"output_tokens":50,"total_tokens":150,"input_tokens_details":{"cached_tokens":90}}`:       150,
		`{"promptTokenCount":100,"candidatesTokenCount":40,"thoughtsTokenCount":10,"totalTokenCount":150}`:             150,
		`{"promptTokenCount":100,"candidatesTokenCount":40,"thoughtsTokenCount":10}`:                                   150,
		`{"inputTokens":100,"outputTokens":50,"totalTokens":150,"cachedInputTokens":90}`:                               150,
		`{"prompt_tokens":0,"completion_tokens":0}`:                                                                    0,
		`{"prompt_tokens":-5,"completion_tokens":9}`:                                                                   0,
		`{"completion_tokens":9}`:                       0,
		`{"prompt_tokens":1e300,"completion_tokens":9}`: 0,
		`{"prompt_tokens":"100"}`:                       0,
		`[1]`:                                           0,
	} {
		ref := create(t, s, window(100000), "")
		got := appendWith(t, s, ref, service.AppendRequest{
			Messages: []json.RawMessage{user("u"), assistant("a")},
			Usage:    json.RawMessage(raw),
		})
		if got.Estimated != (want == 0) || want > 0 && got.UsedTokens != want {
			t.Errorf("%s: %d, estimated %t, wanted %d", raw, got.UsedTokens, got.Estimated, want)
		}
	}
}
