package precis_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"precis"
)

func TestWorkflowID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tenant, name, want string }{
		{"default", "c1", "compaction/default/c1"},
		{"default", "a/b c%C3%A9", "compaction/default/a/b c%C3%A9"},
		{"default", "é", "compaction:encoded/default/%C3%A9"},
		{"é", "a/b", "compaction:encoded/%C3%A9/a%2Fb"},
		{"default", "🙂", "compaction:encoded/default/%F0%9F%99%82"},
		{"a/b", "c", "compaction:encoded/a%2Fb/c"},
		{"default", "a\tb", "compaction:encoded/default/a%09b"},
		{"default", "\xff", "compaction:encoded/default/%FF"},
	} {
		in := precis.Input{Tenant: c.tenant, Conversation: c.name, Run: "r"}
		if got := in.WorkflowID(); got != c.want {
			t.Errorf("%q %q: %q, want %q", c.tenant, c.name, got, c.want)
		}
	}
	replay := precis.Input{Tenant: "default", Conversation: "c", Run: "r", Replay: precis.ReplayLive}
	if got := replay.WorkflowID(); got != "replay/default/r" {
		t.Errorf("a replay has %q", got)
	}
	long := precis.WorkflowID("compaction", "default", strings.Repeat("é", 80))
	if len(long) != 255 || !strings.HasPrefix(long, "compaction:hashed/default/%C3%A9%C3%A9") {
		t.Errorf("a long id is %q", long)
	}
}

// Two conversations never have the same workflow, whatever their ids are, and Temporal accepts each id.
func TestWorkflowIDsDiffer(t *testing.T) {
	t.Parallel()
	kind := rapid.SampledFrom([]string{"compaction", "replay", "replays"})
	id := rapid.OneOf(
		rapid.StringMatching(`[ab/%:é🙂]{0,4}`),
		rapid.StringN(0, 300, 1000),
		rapid.Map(rapid.IntRange(60, 90), func(n int) string { return strings.Repeat("é", n) }),
		rapid.SampledFrom([]string{"a", "a/b", "%C3%A9", "é", "%2F", ":encoded", "encoded/a", "hashed"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		type names struct{ kind, tenant, name string }
		draw := func() (names, string) {
			n := names{kind.Draw(t, "kind"), id.Draw(t, "tenant"), id.Draw(t, "name")}
			return n, precis.WorkflowID(n.kind, n.tenant, n.name)
		}
		a, first := draw()
		b, second := draw()
		if (a == b) != (first == second) {
			t.Fatalf("%+v is %q, %+v is %q", a, first, b, second)
		}
		if len(first) > 255 || strings.IndexFunc(first, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			t.Fatalf("%+v is %q", a, first)
		}
	})
}
