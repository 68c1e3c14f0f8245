package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"precis/internal/devstack"
	"precis/internal/runner"
	"precis/internal/telemetry"
)

// workerCommand is what `precis up --detach` leaves in the background: the worker, from the same program.
func (a *app) workerCommand() *cobra.Command {
	var tethered bool
	cmd := &cobra.Command{
		Use:    "worker",
		Short:  "Serve compactions: the worker of the local stack",
		Long:   "Serves compactions as bin/worker does, on the configured addresses or else on the local stack. It writes the\nline \"ready\" to standard output when it serves.",
		Hidden: true,
		Args:   exactArgs(0),
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.worker(cmd, tethered) },
	}
	cmd.Flags().BoolVar(&tethered, "tethered", false, "end with standard input, unless it says stay")
	return cmd
}

func (a *app) worker(cmd *cobra.Command, tethered bool) (err error) {
	ctx := cmd.Context()
	if tethered {
		tied, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			if !stays(a.in) {
				cancel()
			}
		}()
		ctx = tied
	}
	s := &session{}
	if s.config, s.origins, err = a.config(cmd); err != nil {
		return err
	}
	if !configured(s.config) {
		stack, err := devstack.Attach(ctx, stackOptions(s.config))
		if err != nil {
			return notRunning(err)
		}
		s.use(stack)
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	if err := s.openStore(ctx); err != nil {
		return err
	}
	log := telemetry.Logger(a.err, s.config.Log)
	if err := s.openTemporal(ctx, log); err != nil {
		return err
	}
	return runner.Run(ctx, runner.Options{
		Store: s.store, Client: s.client, Config: s.config, Log: log,
		Ready: func() {
			log.Info("the worker polls", "queues", []string{s.config.Worker.TaskQueue, s.config.Worker.LLMTaskQueue}, "namespace", s.config.Temporal.Namespace)
			_ = a.print("ready\n")
		},
	})
}

// stays reads up to the line that cuts the tether; false when the input ends without it.
func stays(in io.Reader) bool {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == "stay" {
			return true
		}
	}
	return false
}
