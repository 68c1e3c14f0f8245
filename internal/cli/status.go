package cli

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"precis/internal/cli/connect"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/devstack"
	"precis/internal/service"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		GroupID: groupStack,
		Short:   "Show which parts of the stack are running, and what is waiting",
		Long: `Checks the local stack, or the servers that are configured instead of it, and changes nothing. The
exit code is 3 unless the database, Temporal and a worker are all available.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.status(cmd) },
	}
}

// status is the JSON of `precis status`.
type status struct {
	devstack.Report
	Worker devstack.WorkerReport `json:"worker"`
	// Workers counts the workers that poll both queues, on any machine; nil if Temporal does not answer.
	Workers *int           `json:"workers"`
	Queues  []queueStatus  `json:"queues,omitempty"`
	Schema  *schemaStatus  `json:"schema,omitempty"`
	Runs    map[string]int `json:"runs,omitempty"`
	// Problems lists what is wrong, one sentence each.
	Problems []string `json:"problems,omitempty"`
}

type schemaStatus struct {
	Current int64 `json:"current"`
	Latest  int64 `json:"latest"`
}

func (a *app) status(cmd *cobra.Command) (err error) {
	ctx, cancel := context.WithTimeout(cmd.Context(), connect.CloseTimeout)
	defer cancel()
	s := &session{}
	if s.Config, s.Origins, err = a.config(cmd); err != nil {
		return err
	}
	defer func() { _ = s.Close(ctx) }()
	opts := stackOptions(s.Config)
	var st status
	if st.Report, err = devstack.Status(ctx, opts); err != nil {
		return err
	}
	if st.Worker, err = devstack.FindWorker(opts); err != nil {
		return err
	}
	up := true
	for _, service := range st.Services {
		up = up && service.Answers
		if service.Configured && service.Error != "" {
			st.Problems = append(st.Problems, fmt.Sprintf("%s: %s", service.Name, term.OneLine(service.Error)))
		}
	}
	// Database and Temporal are checked independently: one may answer while the other does not.
	if db, err := devstack.Attach(ctx, only(opts, true)); err == nil {
		s.Config.DatabaseURL = db.DatabaseURL
		st.readStore(ctx, s, a)
	}
	if t, err := devstack.Attach(ctx, only(opts, false)); err == nil {
		s.Config.Temporal.Address = t.TemporalAddress
		st.readTemporal(ctx, s, a)
	}
	served := st.Worker.Running || opts.TemporalAddress != "" && st.Workers != nil && *st.Workers > 0
	if err := a.printStatus(st, served); err != nil {
		return err
	}
	if !up || !served || len(st.Problems) > 0 {
		return fail.Silent(fail.ExitUnreachable)
	}
	return nil
}

// only restricts the options to the database or to Temporal.
func only(opts devstack.Options, database bool) devstack.Options {
	opts.NoTemporal, opts.NoDatabase = database, !database
	return opts
}

// readStore adds the state of the database, also of one that no command could work with.
func (st *status) readStore(ctx context.Context, s *session, a *app) {
	problem := func(err error) { st.Problems = append(st.Problems, fail.Explain(err)) }
	v, err := connect.ReadSchema(ctx, s.Config.DatabaseURL)
	if err != nil {
		problem(err)
		return
	}
	st.Schema = &schemaStatus{v.Current, v.Latest}
	if !v.UpToDate() {
		st.Problems = append(st.Problems,
			fmt.Sprintf("the database's schema is at version %d, this build needs %d", v.Current, v.Latest))
		return
	}
	if err := s.OpenStoreOnce(ctx); err != nil {
		problem(err)
		return
	}
	if st.Runs, err = a.service(s).CountRuns(ctx, a.tenant, service.RunFilter{}); err != nil {
		problem(err)
	}
}

// readTemporal adds the state of the task queues.
func (st *status) readTemporal(ctx context.Context, s *session, a *app) {
	if err := s.OpenTemporal(ctx, a.quietLog(s.Config, s.Origins)); err != nil {
		st.Problems = append(st.Problems, fail.Explain(err))
		return
	}
	least := -1
	for _, name := range []string{s.Config.Worker.TaskQueue, s.Config.Worker.LLMTaskQueue} {
		q, err := s.queue(ctx, name)
		if err != nil {
			st.Problems = append(st.Problems,
				fmt.Sprintf("Temporal, namespace %s: %s", s.Config.Temporal.Namespace, fail.Explain(err)))
			return
		}
		st.Queues = append(st.Queues, q)
		if least < 0 || q.Workers < least {
			least = q.Workers
		}
	}
	st.Workers = &least
}

func (a *app) printStatus(st status, served bool) error {
	if a.json {
		return a.printJSON(st)
	}
	var t term.Table
	for _, s := range st.Services {
		t.Row(s.Name, stateOf(s), s.Address, withoutPassword(s.URL))
	}
	worker := "not running"
	switch {
	case st.Worker.Running:
		worker = fmt.Sprintf("running, process %d", st.Worker.PID)
	case served:
		worker = term.Plural(*st.Workers, "worker") + " running"
	}
	t.Row("worker", worker, st.Worker.Log)
	if st.Worker.API != "" {
		t.Row("API", "served", st.Worker.API)
	}
	if st.Schema != nil {
		t.Row("schema", fmt.Sprintf("version %d of %d", st.Schema.Current, st.Schema.Latest))
	}
	for _, q := range st.Queues {
		t.Row("queue "+q.Name, fmt.Sprintf("%d waiting", q.Backlog))
	}
	if st.Runs != nil {
		t.Row("runs", fmt.Sprintf("%d unfinished", st.Runs["unfinished"]), term.Totals(st.Runs))
	}
	if err := a.printRows(t); err != nil {
		return err
	}
	for _, p := range st.Problems {
		a.say("precis: %s", p)
	}
	return nil
}

func stateOf(s devstack.ServiceReport) string {
	where := ""
	if s.Configured {
		where = " (configured)"
	} else if s.Running {
		where = fmt.Sprintf(", process %d", s.PID)
	}
	switch {
	case s.Answers:
		return "answers" + where
	case s.Running, s.Configured:
		return "does not answer" + where
	}
	return "not running"
}

// withoutPassword masks the password of an address; --json prints the full address.
func withoutPassword(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Redacted()
}
