package audit_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"precis/internal/audit"
	"precis/internal/store"
	storecontexts "precis/internal/store/contexts"
	"precis/internal/store/conversations"
	storeevidence "precis/internal/store/evidence"
	"precis/internal/store/exports"
	"precis/internal/store/schema"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/stacktest"
)

func opened(data []byte) func() (io.Reader, error) {
	return func() (io.Reader, error) { return bytes.NewReader(data), nil }
}

// elsewhere is another store.
func elsewhere(t testing.TB) *store.Store {
	t.Helper()
	url := stacktest.DatabaseURL(t)
	if err := schema.Migrate(t.Context(), url, nil); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), url, store.Options{MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func exported(t testing.TB, s *store.Store, ref store.ConversationRef) []byte {
	t.Helper()
	var b bytes.Buffer
	if _, err := audit.Export(t.Context(), s, ref, "test", &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// An export is the same conversation elsewhere, and beside itself: the contexts are the same bytes, the runs verify.
func TestExportAndImport(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := worked(t, s)
	if _, err := s.Store.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Store.LiveState.Set(t.Context(), ref, "plan", []byte("then this")); err != nil {
		t.Fatal(err)
	}
	s.Append(ref, scenario.User("once more"), "{\"role\":\"assistant\",\"content\":\"no \xff UTF-8, \\u0000\"}")
	prune := everything(true)
	prune.Before = time.Now().Add(time.Hour)
	prune.Kinds = []audit.PruneKind{"reports", audit.PruneToolResults}
	if _, err := prune.Run(t.Context(), s.Store); err != nil {
		t.Fatal(err)
	}
	data := exported(t, s.Store, ref)
	if !audit.IsExport(data) {
		t.Errorf("it is not known by its beginning: %.40s", data)
	}
	if second := exported(t, s.Store, ref); !bytes.Equal(body(data), body(second)) {
		t.Error("the same conversation gives another file")
	}

	other := elsewhere(t)
	for name, to := range map[string]struct {
		store  *store.Store
		target exports.Target
		same   bool // the runs keep their ids
	}{
		"elsewhere":           {other, exports.Target{Tenant: store.DefaultTenant}, true},
		"under another id":    {s.Store, exports.Target{Tenant: store.DefaultTenant, ID: "copy"}, false},
		"in another's tenant": {s.Store, exports.Target{Tenant: "mallory", ID: "copy"}, false},
	} {
		if _, err := to.store.Tenants.Ensure(t.Context(), "mallory", ""); err != nil {
			t.Fatal(err)
		}
		im, err := audit.Import(t.Context(), to.store, to.target, opened(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(im.Runs) != len(runs) || (im.Runs[runs[0].Ref.ID] == runs[0].Ref.ID) != to.same {
			t.Errorf("%s: %v", name, im.Runs)
		}
		for _, run := range runs {
			r, err := audit.VerifyRun(t.Context(), to.store,
				store.RunRef{Tenant: to.target.Tenant, ID: im.Runs[run.Ref.ID]})
			if err != nil || !r.OK {
				t.Errorf("%s: %v\n%s", name, err, report(r))
			}
		}
		if got, want := liveContext(t, to.store, im.Conversation.Ref), liveContext(t, s.Store, ref); got != want {
			t.Errorf("%s: the context is\n%s\nand was\n%s", name, got, want)
		}
		// What was imported can be exported, and undone.
		if again := exported(t, to.store, im.Conversation.Ref); to.same &&
			!bytes.Equal(messagesOf(again), messagesOf(data)) {
			t.Errorf("%s: exported again the messages are others", name)
		}
		if _, err := to.store.Markers.Undo(t.Context(), im.Conversation.Ref, ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := audit.Import(t.Context(), to.store, to.target, opened(data)); !errors.Is(err, store.ErrConflict) {
			t.Errorf("%s, a second time: %v", name, err)
		}
	}
}

// A summary names the conversation by the id that it had when it was written, however often it moved on since.
func TestImportOfAnImport(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := worked(t, s)
	first, err := audit.Import(t.Context(), s.Store, exports.Target{Tenant: store.DefaultTenant, ID: "twin"},
		opened(exported(t, s.Store, ref)))
	if err != nil {
		t.Fatal(err)
	}
	other := elsewhere(t)
	second, err := audit.Import(t.Context(), other, exports.Target{Tenant: store.DefaultTenant, ID: "third"},
		opened(exported(t, s.Store, first.Conversation.Ref)))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		id := second.Runs[first.Runs[run.Ref.ID]]
		if r, err := audit.VerifyRun(t.Context(), other,
			store.RunRef{Tenant: store.DefaultTenant, ID: id}); err != nil || !r.OK {
			t.Errorf("%v\n%s", err, report(r))
		}
	}
}

func liveContext(t testing.TB, s *store.Store, ref store.ConversationRef) string {
	t.Helper()
	live, err := s.Contexts.Read(t.Context(), ref, storecontexts.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", live.Summary)
	for _, list := range [][]conversations.Message{live.Carried, live.Tail} {
		for _, m := range list {
			fmt.Fprintf(&b, "%d %s\n", m.Seq, m.Native)
		}
	}
	for _, e := range live.Enrichments {
		fmt.Fprintf(&b, "%s %s\n", e.Key, e.Value)
	}
	return b.String()
}

// body is an export without its first line, which has the time, and the last, which has the hash.
func body(data []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return bytes.Join(lines[1:len(lines)-1], []byte("\n"))
}

func messagesOf(data []byte) []byte {
	var out [][]byte
	for _, line := range bytes.Split(data, []byte("\n")) {
		if bytes.HasPrefix(line, []byte(`{"table":"messages"`)) {
			out = append(out, line)
		}
	}
	return bytes.Join(out, []byte("\n"))
}

// A file that is damaged or cut off is refused with the line, and nothing of it stays.
func TestDamagedExportsAreRefused(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, _ := compacted(t, s)
	data := exported(t, s.Store, ref)
	other := elsewhere(t)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	join := func(l [][]byte) []byte { return bytes.Join(l, nil) }
	without := func(table string) [][]byte {
		i := slices.IndexFunc(lines, func(l []byte) bool { return bytes.HasPrefix(l, []byte(`{"table":"`+table+`"`)) })
		return slices.Delete(slices.Clone(lines), i, i+1)
	}
	cases := map[string][]byte{
		"cut off":         data[:len(data)/2],
		"without its end": join(lines[:len(lines)-1]),
		"empty":           {},
		"something else":  []byte("{\"role\":\"user\"}\n"),
		"another version": bytes.Replace(data, []byte(`"precis_export":1`), []byte(`"precis_export":9`), 1),
		"a changed byte":  bytes.Replace(data, []byte("I look."), []byte("I took."), 1),
		"more behind it":  append(slices.Clone(data), "{}\n"...),
		"a missing line":  join(without("messages")),
	}
	// A file with a matching trailer is refused for its content.
	for table, change := range map[string]func(l []byte) []byte{
		"messages": func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"role":"user"`), []byte(`"role":"tool"`),
				1)
		},
		"runs": func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"outcome":"applied"`), []byte(`"outcome":"skipped"`), 1)
		},
		"usage_ledger": func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"attempt":1`), []byte(`"attempt":2`),
				1)
		},
		"markers": func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"origin":"ours"`), []byte(`"origin":"agent"`), 1)
		},
		"enrichments":  func([]byte) []byte { return nil },
		"run_attempts": func([]byte) []byte { return nil },
		"artifacts":    func([]byte) []byte { return nil },
		"seals":        func([]byte) []byte { return nil },
		"events":       func([]byte) []byte { return nil },
		"stage_results": func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"stage":"`), []byte(`"stage":"x`), 1)
		},
	} {
		cases["forged "+table] = forged(t, lines, table, change)
	}
	for name, damaged := range cases {
		_, err := audit.Import(t.Context(), other, exports.Target{Tenant: store.DefaultTenant}, opened(damaged))
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n, err := other.Evidence.Count(t.Context(), storeevidence.Filter{}); n != 0 || err != nil {
		t.Errorf("%d conversations were left, %v", n, err)
	}
	if _, err := audit.Import(t.Context(), other, exports.Target{Tenant: "nobody"}, opened(data)); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("a tenant that does not exist: %v", err)
	}
	if _, err := audit.Import(t.Context(), other, exports.Target{Tenant: store.DefaultTenant},
		opened(data)); err != nil {
		t.Errorf("the whole file: %v", err)
	}
}

// forged changes the first row of a table, and makes counts and hash fit.
func forged(t testing.TB, lines [][]byte, table string, change func([]byte) []byte) []byte {
	t.Helper()
	i := slices.IndexFunc(lines, func(l []byte) bool { return bytes.HasPrefix(l, []byte(`{"table":"`+table+`"`)) })
	changed := change(lines[i])
	if bytes.Equal(changed, lines[i]) {
		t.Fatalf("%s: nothing to change in %s", table, lines[i])
	}
	out := slices.Clone(lines[:len(lines)-1])
	if changed == nil {
		out = slices.Delete(out, i, i+1)
	} else {
		out[i] = changed
	}
	return audit.Trailed(bytes.Join(out, nil))
}

// An import goes to the tenant that asks for it, and none of it to another.
func TestImportBelongsToItsTenant(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := compacted(t, s)
	if _, err := s.Store.Tenants.Ensure(t.Context(), "mallory", ""); err != nil {
		t.Fatal(err)
	}
	im, err := audit.Import(t.Context(), s.Store, exports.Target{Tenant: "mallory"},
		opened(exported(t, s.Store, ref)))
	if err != nil || im.Conversation.Ref.Tenant != "mallory" || im.Conversation.Ref.ID != ref.ID {
		t.Fatalf("%+v %v", im.Conversation.Ref, err)
	}
	theirs := im.Runs[runs[0].Ref.ID]
	if _, err := s.Store.Runs.Get(t.Context(), store.RunRef{Tenant: store.DefaultTenant, ID: theirs}); !errors.Is(err,
		store.ErrNotFound) {
		t.Errorf("the first tenant finds the second's run: %v", err)
	}
	if r := verified(t, s, runs[0]); !r.OK {
		t.Errorf("the original:\n%s", report(r))
	}
}

// full takes so many bytes and then says what a full disk or a pipe that was closed says.
type full struct {
	room int
	err  error
}

func (f *full) Write(b []byte) (int, error) {
	if f.room -= len(b); f.room < 0 {
		return 0, &fs.PathError{Op: "write", Path: "/dev/stdout", Err: f.err}
	}
	return len(b), nil
}

// The error of a failed export names its cause: a full disk is not reported as a lost database connection.
func TestExportTellsWhatItCannotWrite(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, _ := compacted(t, s)
	s.Append(ref, scenario.User(strings.Repeat("much to say. ", 200_000)))
	for _, reason := range []error{syscall.ENOSPC, syscall.EPIPE} {
		for _, room := range []int{0, 1 << 20} {
			_, err := audit.Export(t.Context(), s.Store, ref, "test", &full{room, reason})
			if !errors.Is(err, reason) || strings.Contains(err.Error(), "database") {
				t.Errorf("%v after %d bytes: %v", reason, room, err)
			}
		}
	}
}

// A file whose rows belong to another's run, which no seal of it knows, or which says another state than its seals is
// refused whoever made counts and hash fit, and the other's run is left as it was.
func TestImportTakesOnlyItsOwnRows(t *testing.T) {
	t.Parallel()
	s := newSystem(t)
	ref, runs := compacted(t, s)
	data := exported(t, s.Store, ref)
	other := elsewhere(t)
	if _, err := other.Tenants.Ensure(t.Context(), "victim", ""); err != nil {
		t.Fatal(err)
	}
	im, err := audit.Import(t.Context(), s.Store, exports.Target{Tenant: store.DefaultTenant, ID: "twin"},
		opened(data))
	if err != nil {
		t.Fatal(err)
	}
	twin := exported(t, s.Store, im.Conversation.Ref)
	if _, err := audit.Import(t.Context(), other, exports.Target{Tenant: "victim"}, opened(twin)); err != nil {
		t.Fatal(err)
	}
	stolen := im.Runs[runs[0].Ref.ID] // the victim's, which the file does not have
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines = lines[:len(lines)-1]
	run, nine := regexp.MustCompile(`"run":"[^"]*"`), regexp.MustCompile(`"(attempt|call)":\d+`)
	foreign := func(l []byte) []byte {
		return nine.ReplaceAll(run.ReplaceAll(l, []byte(`"run":"`+stolen+`"`)), []byte(`"$1":99`))
	}
	for name, file := range map[string][]byte{
		"a step of another's run": doubled(t, lines, "run_attempts", foreign),
		"a call of another's run": doubled(t, lines, "usage_ledger", foreign),
		"a result for another's":  doubled(t, lines, "stage_results", foreign),
		"a step more": doubled(t, lines, "run_attempts", func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"attempt":1`), []byte(`"attempt":9`), 1)
		}),
		"a call more": doubled(t, lines, "usage_ledger", func(l []byte) []byte {
			return bytes.Replace(l, []byte(`"attempt":1`), []byte(`"attempt":9`), 1)
		}),
		"a run that never ends": doubled(t, lines, "runs", func(l []byte) []byte {
			l = bytes.Replace(l, []byte(`"id":"0`), []byte(`"id":"f`), 1)
			l = regexp.MustCompile(`"(outcome|finished_at)":"[^"]*"`).ReplaceAll(l, []byte(`"$1":null`))
			return regexp.MustCompile(`"workflow_id":"`).ReplaceAll(l, []byte(`"workflow_id":"x`))
		}),
		"no marker is active": forged(t, lines, "conversations", func(l []byte) []byte {
			return regexp.MustCompile(`"active_marker":"[^"]*"`).ReplaceAll(l, []byte(`"active_marker":null`))
		}),
		"another epoch": forged(t, lines, "conversations", func(l []byte) []byte {
			return regexp.MustCompile(`"epoch":\d+`).ReplaceAll(l, []byte(`"epoch":77`))
		}),
	} {
		_, err := audit.Import(t.Context(), other, exports.Target{Tenant: store.DefaultTenant, ID: "copy"},
			opened(file))
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	r, err := audit.VerifyRun(t.Context(), other, store.RunRef{Tenant: "victim", ID: stolen})
	if err != nil || slices.ContainsFunc(r.Checks,
		func(c audit.Check) bool { return c.Name == audit.CheckRecords && c.State != audit.OK }) {
		t.Errorf("the other's run: %v\n%s", err, report(r))
	}
}

// doubled puts another row behind the first one of a table, made from it.
func doubled(t testing.TB, lines [][]byte, table string, change func([]byte) []byte) []byte {
	t.Helper()
	return forged(t, lines, table, func(l []byte) []byte { return append(slices.Clone(l), change(l)...) })
}

// Whatever a file holds, reading it ends, with rows or an error that names the line.
func FuzzReadExport(f *testing.F) {
	head := "{\"precis_export\":1,\"conversation\":\"c\",\"format\":\"openai\",\"messages\":0,\"head\":\"\"," +
		"\"exported\":\"2026-01-01T00:00:00Z\",\"code\":\"x\"}\n"
	f.Add([]byte(head))
	f.Add([]byte(audit.Trailed([]byte(head))))
	f.Add([]byte(audit.Trailed([]byte(head + "{\"table\":\"messages\",\"row\":{\"seq\":1},\"text\":\"x\"}\n"))))
	f.Add([]byte("{\"end\":true}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := audit.CheckExport(bytes.NewReader(data)); err != nil &&
			(!errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), "line ")) {
			t.Errorf("%v", err)
		}
	})
}
