package service_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// A context with what the vendor itself compacted says under which beta it goes back, and declares the edit; in
// another format it is the readable summary, and needs nothing.
func TestContextOfTheVendorsOwn(t *testing.T) {
	t.Parallel()
	sys := scenario.New(
		t, vendorserver.Script{Default: &vendorserver.Answer{Text: "<summary>SUM of it all.</summary>"}})
	sys.Config.Models = map[string]config.Model{
		"anthropic/own-on-demand": {Window: 200_000, NativeCompaction: []string{"on_demand"}},
		"anthropic/own-edit":      {Window: 200_000, NativeCompaction: []string{"edit"}},
	}
	sys.StartWorker()
	s := sys.Service()
	for model, beta := range map[string]string{
		"own-on-demand": "compact-2026-09-04",
		"own-edit":      "compact-2026-01-12",
	} {
		n := service.NewConversation{
			Format: "anthropic",
			Model:  wire.Model{Vendor: "anthropic", Name: model, ContextWindow: 200_000},
		}
		n.System, n.Tools = json.RawMessage(`"s"`), json.RawMessage(`[]`)
		ref := create(t, s, n, `{"mode":"beta","tool_result_keep_turns":0,"trigger":{"auto":false}}`)
		var talk []json.RawMessage
		for _, m := range scenario.Turns(10, 6000) {
			talk = append(talk, json.RawMessage(m))
		}
		appendTo(t, s, ref, talk...)
		if run := compact(t, s, ref, service.CompactRequest{}); run.Outcome != precis.OutcomeApplied {
			t.Fatalf("%s: %+v", model, run)
		}
		own := contextOf(t, s, ref)
		if !slices.Equal(own.Betas, []string{beta}) ||
			strings.Contains(string(own.Options), "compact_20260112") != (model == "own-edit") {
			t.Errorf("%s: betas %q, options %s", model, own.Betas, own.Options)
		}
		if text := sent(own); !strings.Contains(text, `"type":"compaction"`) ||
			strings.Contains(text, "<conversation_summary>") {
			t.Errorf("%s: %.300s", model, text)
		}
		other, err := s.Context(t.Context(), ref, service.ContextRequest{Format: "openai"})
		if err != nil {
			t.Fatal(err)
		}
		if text := sent(other); len(other.Betas) != 0 || other.Options != nil ||
			strings.Contains(text, `"compaction"`) || !strings.Contains(text, "SUM of it all") {
			t.Errorf("%s as openai: betas %q, %.300s", model, other.Betas, text)
		}
	}
}
