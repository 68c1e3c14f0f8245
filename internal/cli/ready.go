package cli

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/fail"
)

// readyTimeout limits a readiness check: longer than the checks of the server itself take.
const readyTimeout = 15 * time.Second

func (a *app) readyCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "ready [URL]",
		GroupID: groupStack,
		Short:   "Check whether a server is ready, for health checks where there is no curl",
		Long: `Asks /readyz of the API at URL, or of a worker's own address (worker.metrics_addr), whether PostgreSQL
and Temporal answer and a worker polls both queues. Without URL: http.addr on this machine. Exit codes: 0 ready,
1 not ready, 3 no answer.`,
		Example: `  precis ready
  precis ready http://127.0.0.1:9464`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return fail.Usagef("`precis ready` takes URL alone, not also %q", args[1])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.ready(cmd.Context(), args[0])
			}
			c, _, err := a.config(cmd)
			if err != nil {
				return err
			}
			return a.ready(cmd.Context(), ownURL(c.HTTP.Addr))
		},
	}
}

// ownURL returns the URL at which this machine reaches a server that listens on addr.
func ownURL(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "http://" + addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

func (a *app) ready(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(url, "/")+"/readyz", http.NoBody)
	if err != nil {
		return fail.Usagef("%q is not a URL such as http://127.0.0.1:8700", url)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fail.Unreachablef("%s does not answer: %w", url, err)
	}
	defer func() { _ = res.Body.Close() }()
	var is wire.Ready
	if err := json.NewDecoder(res.Body).Decode(&is); err != nil || is.Status == "" {
		return fail.Unreachablef("%s answers with status %d, and not as precis does", url, res.StatusCode)
	}
	if a.json {
		err = a.printJSON(is)
	} else {
		err = a.print(is.Status + "\n")
	}
	if err != nil || res.StatusCode == http.StatusOK {
		return err
	}
	for _, c := range is.Checks {
		if !c.OK {
			a.say("precis: %s: %s", c.Name, c.Detail)
		}
	}
	return fail.Silent(fail.ExitFailed)
}
