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
		Short:   "Stop the local stack; its data stay",
		Long: `Stops the worker and the servers that the local stack started, and no other process. The worker first finishes
what it is at, within worker.drain_seconds; what it does not finish is taken up by the next. The data stay.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.down(cmd) },
	}
}

// stopped is what `precis down` ended.
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
	// A little more than the worker gives itself.
	patience := time.Duration(cfg.Worker.DrainSeconds)*time.Second + 5*time.Second
	var out stopped
	if out.Worker, err = devstack.StopWorker(cmd.Context(), opts, patience); err != nil {
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
