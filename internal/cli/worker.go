package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"precis/internal/worker"
)

// workerCommand is the background process of `precis up --detach`: the worker and the API, from the same program.
func (a *app) workerCommand() *cobra.Command {
	var tethered bool
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Serve compactions and the HTTP API: the worker of the local stack",
		Long: `Serves compactions as bin/worker does, and the HTTP API, on the configured addresses or else on the
local stack. When it is ready it writes a line with "ready" and the address of the API to standard output.`,
		Hidden: true,
		Args:   exactArgs(0),
		RunE:   func(cmd *cobra.Command, _ []string) error { return a.worker(cmd, tethered) },
	}
	cmd.Flags().BoolVar(&tethered, "tethered", false, "end when standard input ends, unless a line \"stay\" was read")
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
	s, err := a.attach(ctx, cmd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close(ctx)) }()
	h, err := a.openAPI(ctx, s, "precis", s.OpenTemporal)
	if err != nil {
		return err
	}
	return serveAll(ctx, s.WorkerOptions(h.log, h.tel, func() {
		worker.LogReady(h.log, s.Config, "api", h.url())
		_ = a.print("ready " + h.url() + "\n")
	}), h)
}

// stays reads the input up to a line "stay". It reports false if the input ends without one.
func stays(in io.Reader) bool {
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == "stay" {
			return true
		}
	}
	return false
}
