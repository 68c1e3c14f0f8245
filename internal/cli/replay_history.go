package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/cobra"
	eventspb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"

	"precis/internal/cli/fail"
	"precis/internal/cli/historycheck"
	"precis/internal/cli/term"
	"precis/internal/devstack"
)

// replayHistory replays a workflow's history against this build: that of a file, or of a workflow by its id.
func (a *app) replayHistory(cmd *cobra.Command, of string) (err error) {
	ctx := cmd.Context()
	var events *eventspb.History
	if info, statErr := os.Stat(of); statErr == nil && !info.IsDir() {
		if events, err = historycheck.ReadFile(of); err != nil {
			return fail.Usagef("%s: %s", of, err)
		}
	} else if events, err = a.fetchHistory(ctx, cmd, of); err != nil {
		return err
	}
	report, err := historycheck.Replay(events)
	if err != nil {
		return fail.Usagef("%s: %s", of, err)
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		var f term.Facts
		f.Add("workflow", report.Workflow)
		f.Add("events", term.Count(report.Events))
		f.Add("result", map[bool]string{true: "it replays: ", false: "it does not replay: "}[report.OK]+report.Detail)
		var b strings.Builder
		f.Write(&b, term.LineWidth)
		err = a.print(b.String())
	}
	if err == nil && !report.OK {
		err = fail.Silent(fail.ExitFailed)
	}
	return err
}

// fetchHistory reads a history from the Temporal that is configured, or that of the local stack. No worker is needed.
func (a *app) fetchHistory(ctx context.Context, cmd *cobra.Command, id string) (events *eventspb.History, err error) {
	s := &session{}
	if s.Config, s.Origins, err = a.config(cmd); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	if s.Config.Temporal.Address == "" {
		stack, err := devstack.Attach(ctx, stackOptions(s.Config))
		if err != nil {
			return nil, notRunning(err)
		}
		s.Use(stack)
	}
	if err := s.OpenTemporal(ctx, a.quietLog(s.Config, s.Origins)); err != nil {
		return nil, err
	}
	events, err = historycheck.Fetch(ctx, s.Client, id, "")
	if errors.As(err, new(*serviceerror.NotFound)) {
		return nil, fail.Usagef("there is neither a file nor a workflow %q; `precis show RUN` names a run's workflow",
			id)
	}
	return events, err
}
