package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"precis/internal/cli/connect"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/version"
)

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "doctor",
		GroupID: groupAdmin,
		Short:   "Check what precis needs on this machine, and say how to fix it",
		Long: `Checks everything that precis needs here, and changes nothing. The exit code is 1 if something that is
needed is missing.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd) },
	}
}

// diagnosis is the JSON of `precis doctor`.
type diagnosis struct {
	Version  string    `json:"version"`
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`
}

type finding struct {
	devstack.Finding
	// Needed reports whether nothing works without it.
	Needed bool `json:"needed"`
}

func (a *app) doctor(cmd *cobra.Command) error {
	ctx := cmd.Context()
	cfg, origins, err := a.config(cmd)
	if err != nil {
		return err
	}
	d := diagnosis{Version: version.Text(), OK: true}
	opts := stackOptions(cfg)
	for _, f := range devstack.Doctor(ctx, opts) {
		d.Findings = append(d.Findings, finding{f, true})
	}
	d.Findings = append(d.Findings, a.database(ctx, cfg, opts)...)
	d.Findings = append(d.Findings, a.temporal(ctx, cfg, origins, opts)...)
	d.Findings = append(d.Findings, vendorFindings(cfg, origins)...)
	for _, f := range d.Findings {
		d.OK = d.OK && (f.OK || !f.Needed)
	}
	if a.json {
		err = a.printJSON(d)
	} else {
		err = a.printDiagnosis(d)
	}
	if err == nil && !d.OK {
		err = fail.Silent(fail.ExitFailed)
	}
	return err
}

// database checks the schema, if a database is running.
func (a *app) database(ctx context.Context, cfg config.Config, opts devstack.Options) []finding {
	stack, err := devstack.Attach(ctx, only(opts, true))
	if err != nil {
		return nil // not running, or reported already as not answering
	}
	f := finding{devstack.Finding{Name: "database schema", OK: true}, opts.DatabaseURL != ""}
	v, err := connect.ReadSchema(ctx, stack.DatabaseURL)
	switch {
	case err != nil:
		f.OK, f.Detail, f.Mend = false, fail.Explain(err), "check database_url (PRECIS_DATABASE_URL)"
	case v.Current < v.Latest:
		f.OK, f.Detail, f.Mend = false, fmt.Sprintf("version %d, this build needs %d", v.Current, v.Latest),
			"run `precis migrate`"
	case v.Current > v.Latest:
		f.OK, f.Detail, f.Mend = false, fmt.Sprintf("version %d, this build knows %d", v.Current, v.Latest),
			"use a newer build of precis"
	default:
		f.Detail = fmt.Sprintf("version %d", v.Current)
	}
	return []finding{f}
}

// temporal checks the namespace and the workers, if Temporal is running.
func (a *app) temporal(ctx context.Context, cfg config.Config, origins config.Origins,
	opts devstack.Options,
) []finding {
	stack, err := devstack.Attach(ctx, only(opts, false))
	if err != nil {
		return nil
	}
	s := &session{}
	s.Config, s.Origins = cfg, origins
	s.Config.Temporal.Address = stack.TemporalAddress
	defer func() { _ = s.Close(ctx) }()
	here := finding{
		devstack.Finding{Name: "Temporal namespace", OK: true, Detail: cfg.Temporal.Namespace},
		opts.TemporalAddress != "",
	}
	if err := s.OpenTemporal(ctx, a.quietLog(cfg, origins)); err != nil {
		here.OK, here.Detail, here.Mend = false, fail.Explain(err),
			"check temporal.address, and temporal.tls or temporal.api_key if it asks for them"
		return []finding{here}
	}
	worker := finding{devstack.Finding{Name: "worker", OK: true}, false}
	for _, name := range []string{cfg.Worker.TaskQueue, cfg.Worker.LLMTaskQueue} {
		q, err := s.queue(ctx, name)
		if err != nil {
			here.OK, here.Detail, here.Mend = false, fail.Explain(err),
				"create the namespace, or name another with temporal.namespace"
			return []finding{here}
		}
		if q.Workers == 0 && worker.OK {
			worker.OK, worker.Detail = false, "no worker serves queue "+name
			worker.Mend = "start bin/worker"
			if opts.TemporalAddress == "" {
				worker.Mend = "run `precis up`; until then, commands that need a worker run one themselves"
			}
			worker.Needed = opts.TemporalAddress != ""
		}
	}
	if worker.OK {
		worker.Detail = "both queues are served"
	}
	return []finding{here, worker}
}

// vendorFindings lists the vendors whose models can be called. None is required, since a digest needs no model.
func vendorFindings(cfg config.Config, origins config.Origins) []finding {
	var names, usable []string
	for _, name := range slices.Sorted(maps.Keys(cfg.Vendors)) {
		names = append(names, name)
		if !canBeCalled(cfg, name) {
			continue
		}
		text := name
		if from := origins.Of("vendors." + name + ".api_key"); from.Source != config.SourceDefault {
			text += " (key from " + from.String() + ")"
		} else if from := origins.Of("vendors." + name + ".base_url"); from.Source != config.SourceDefault {
			text += " (address from " + from.String() + ")"
		}
		usable = append(usable, text)
	}
	f := finding{devstack.Finding{Name: "model vendors", OK: len(usable) > 0}, false}
	if f.OK {
		f.Detail = strings.Join(usable, ", ")
		return []finding{f}
	}
	f.Detail = "none of " + strings.Join(names, ", ") + " has a key: compactions end in the digest"
	f.Mend = "set ANTHROPIC_API_KEY, OPENAI_API_KEY, or vendors.NAME.base_url for a model of your own"
	return []finding{f}
}

func (a *app) printDiagnosis(d diagnosis) error {
	var t term.Table
	t.Row("ok", "precis", d.Version)
	for _, f := range d.Findings {
		mark := "ok"
		switch {
		case !f.OK && f.Needed:
			mark = "MISSING"
		case !f.OK:
			mark = "note"
		}
		t.Row(mark, f.Name, f.Detail)
		if f.Mend != "" {
			t.Row(" ", " ", "→ "+f.Mend)
		}
	}
	if err := a.printRows(t); err != nil {
		return err
	}
	if !d.OK {
		a.say("precis: something that is needed is missing: see above")
	}
	return nil
}
