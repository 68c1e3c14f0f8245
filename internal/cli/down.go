package cli

import (
	"time"

	"github.com/spf13/cobra"

	"precis/internal/cli/term"
	"precis/internal/devstack"
)

func (a *app) downCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "down",
		GroupID: groupStack,
		Short:   "Stop the local stack; its data are kept",
		Long: `Stops the worker and the servers that the local stack started, and no other process. The worker first
finishes its current work, within worker.drain_seconds; what it does not finish, the next worker continues. The
data are kept.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.down(cmd) },
	}
}

// stopped is the JSON of `precis down`.
type stopped struct {
	devstack.Report
	Worker devstack.WorkerReport `json:"worker"`
}

func (a *app) down(cmd *cobra.Command) error {
	cfg, _, err := a.config(cmd)
	if err != nil {
		return err
	}
	opts := stackOptions(cfg)
	p := a.progress()
	opts.Progress = stackProgress(p, false)
	defer p.Clear()
	// A little longer than the worker takes to drain.
	timeout := time.Duration(cfg.Worker.DrainSeconds)*time.Second + 5*time.Second
	var out stopped
	if out.Worker, err = devstack.StopWorker(cmd.Context(), opts, timeout); err != nil {
		return err
	}
	if out.Report, err = devstack.Down(cmd.Context(), opts); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(out)
	}
	p.Clear()
	var t term.Table
	if out.Worker.Stopped {
		t.Row("worker", "stopped")
	}
	for _, s := range out.Services {
		if s.Stopped {
			t.Row(s.Name, "stopped")
		}
	}
	if len(t.Rows) == 0 {
		a.say("precis: nothing was running in %s", out.Dir)
		return nil
	}
	return a.printRows(t)
}
