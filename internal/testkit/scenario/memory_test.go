package scenario_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/memory"
	"precis/internal/service"
	"precis/internal/store/markers"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
	"precis/pipeline"
)

const memorySummary = "<summary>The parts were read one by one.</summary>"

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("not in time: %s", what)
		}
	}
}

// What runs have covered becomes files in the configured folder, written by a worker that has it, whoever ran the
// compaction, and again where it is missing; and every context says how to get it back.
func TestMemoryFolder(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: memorySummary}})
	svc := s.Service()
	s.StartWorker() // it has no folder
	ref := s.Create(scenario.Conversation{
		Window:   20_000,
		Messages: append([]string{scenario.User("remember foo_bar/baz.go:17")}, scenario.Turns(4, 400)...),
	})
	first := s.Compact(ref, runs.Request{})
	if first.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s\n%s", first.Reason, s.Attempts(first))
	}
	context := strings.Join(s.Context(ref), "\n")
	for _, part := range []string{"/v1/conversations/" + ref.ID + "/segments/INDEX.md", "/search with q=WORDS"} {
		if strings.Count(context, part) != 1 {
			t.Errorf("the context has %q %d times:\n%s", part, strings.Count(context, part), context)
		}
	}
	if strings.Contains(context, "foo_bar/baz.go:17") {
		t.Error("what was covered is in the context itself")
	}
	if again := strings.Join(s.Context(ref), "\n"); again != context {
		t.Error("a second read gives another context")
	}

	s.StopWorker()
	folder := filepath.Join(t.TempDir(), "memory")
	s.Config.Memory.Folder = folder
	s.StartWorker()
	dir := filepath.Join(folder, filepath.FromSlash(memory.FolderName(ref)))
	same := func(name string) bool {
		g, err := svc.ReadSegment(t.Context(), ref, name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		return err == nil && string(got) == g.Text
	}
	eventually(t, "what was compacted before there was a folder is written",
		func() bool { return same("segment_0001.md") && same("INDEX.md") })

	// A second compaction, after an undo, begins where the first one ended; a file that is missing comes back.
	if err := os.Remove(filepath.Join(dir, "segment_0001.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := svc.Undo(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	eventually(t, "an undo writes what is missing", func() bool { return same("segment_0001.md") })
	s.Append(ref, scenario.Turns(3, 400)...)
	second := s.Compact(ref, runs.Request{Kind: pipeline.TriggerManual, Full: true})
	if second.Outcome != precis.OutcomeApplied {
		t.Fatalf("%s\n%s", second.Reason, s.Attempts(second))
	}
	page, err := svc.ListSegments(t.Context(), ref, 0, "")
	if err != nil || len(page.Segments) != 3 {
		t.Fatalf("%+v, %v", page, err)
	}
	a, b := page.Segments[1], page.Segments[2]
	if a.CoversFrom != 1 || a.CoversTo != first.Facts.CoversTo || b.CoversFrom != a.CoversTo+1 ||
		b.CoversTo != second.Facts.CoversTo {
		t.Errorf("runs covered up to %d and %d: %+v", first.Facts.CoversTo, second.Facts.CoversTo, page.Segments)
	}
	if _, _, err := svc.AddNote(t.Context(), ref, service.NewNote{Name: "plan.md", Text: "the plan"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second segment and the note are written",
		func() bool { return same("segment_0002.md") && same("plan.md") && same("INDEX.md") })
}

// The pointer names the memory's tools where the agent has them, and a summary that is computed ahead has it as well.
func TestMemoryOfABackgroundCompaction(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: memorySummary}})
	svc := s.Service()
	s.StartWorker()
	ref := s.Create(scenario.Conversation{
		Window: 40_000,
		Settings: map[string]any{"trigger": map[string]any{
			"start": map[string]any{"unused_percent": 0.95},
			"apply": map[string]any{"unused_percent": 0.1},
		}},
		System: json.RawMessage(`"You read."`),
		Tools: json.RawMessage(`[{"name":"mcp__precis__search_transcript","input_schema":{"type":"object"}},{` +
			`"name":"mcp__precis__read_messages","input_schema":{"type":"object"}}]`),
		Messages: append([]string{scenario.User("remember foo_bar/baz.go:17")}, scenario.Turns(4, 800)...),
	})
	run := s.Compact(ref, runs.Request{Kind: pipeline.TriggerBackground, Prepare: true})
	if run.Outcome != precis.OutcomePrepared {
		t.Fatalf("%s %s\n%s", run.Outcome, run.Reason, s.Attempts(run))
	}
	if page, err := svc.ListSegments(t.Context(), ref, 0, ""); err != nil || len(page.Segments) != 0 {
		t.Errorf("of a summary that only waits: %+v, %v", page, err)
	}
	view := s.View(ref)
	if _, _, err := s.Store.Markers.ApplyPrepared(t.Context(), ref, view.Prepared.ID,
		markers.Application{}); err != nil {
		t.Fatal(err)
	}
	page, err := svc.ListSegments(t.Context(), ref, 0, "")
	if err != nil || len(page.Segments) != 2 || page.Segments[1].Marker != view.Prepared.ID {
		t.Fatalf("%+v, %v", page, err)
	}
	found, err := svc.Search(t.Context(), ref, "baz.go:17", 0, "")
	if err != nil || len(found.Hits) != 1 || found.Hits[0].Segment != "segment_0001.md" || !found.Hits[0].Covered {
		t.Errorf("%+v, %v", found, err)
	}
	context := strings.Join(s.Context(ref), "\n")
	if !strings.Contains(
		context, "Find what was said with mcp__precis__search_transcript, read it with mcp__precis__read_messages") ||
		strings.Contains(context, "GET ") {
		t.Error(context)
	}
}
