package launch_test

import (
	"errors"
	"strings"
	"testing"

	"precis/internal/launch"
	"precis/internal/store"
	"precis/internal/store/runs"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// Live replays are bounded for a run and for a tenant's day, and replays from the record are not.
func TestLiveReplaysAreBounded(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{Default: &vendorserver.Answer{Text: summary}})
	s.StartWorker()
	l := launcher(s)
	l.Config.Replays.LivePerRun, l.Config.Replays.LivePerDay = 2, 3
	var ended []store.RunRef
	for range 2 {
		run := ask(t, l, talk(s), runs.Request{})
		if _, err := l.Wait(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		ended = append(ended, run.Ref)
	}
	replay := func(run store.RunRef, live bool) error {
		_, _, err := launch.AskReplay(t.Context(), s.Store, l.Config, run, launch.ReplayRequest{Live: live})
		return err
	}
	refused := func(err error, key string) {
		t.Helper()
		if !errors.Is(err, store.ErrInvalid) || !strings.Contains(err.Error(), key) {
			t.Errorf("%v: it does not name %s", err, key)
		}
	}
	for range 2 {
		if err := replay(ended[0], true); err != nil {
			t.Fatal(err)
		}
	}
	refused(replay(ended[0], true), "replays.live_per_run")
	if err := replay(ended[1], true); err != nil {
		t.Fatal(err)
	}
	refused(replay(ended[1], true), "replays.live_per_day")
	if err := replay(ended[1], false); err != nil {
		t.Errorf("a replay from the record: %v", err)
	}
}
