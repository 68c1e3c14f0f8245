package cli

import (
	"github.com/spf13/cobra"

	"precis/internal/cli/connect"
	"precis/internal/devstack"
)

func (a *app) migrateCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "migrate",
		GroupID: groupAdmin,
		Short:   "Bring the database's schema up to date",
		Long: `Applies the migrations that the database does not have yet. They only go forward and are safe on a
database that is in use. The command may be run any number of times, also concurrently. The local stack migrates
automatically.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.migrate(cmd) },
	}
}

func (a *app) migrate(cmd *cobra.Command) error {
	ctx := cmd.Context()
	cfg, _, err := a.config(cmd)
	if err != nil {
		return err
	}
	url := cfg.DatabaseURL
	if url == "" {
		stack, err := devstack.Attach(ctx, only(stackOptions(cfg), true))
		if err != nil {
			return notRunning(err)
		}
		url = stack.DatabaseURL
	}
	before, now, err := connect.Migrate(ctx, url, func(line string) { a.say("%s", line) })
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]int64{"before": before, "now": now})
	}
	if before == now {
		a.say("precis: the schema is up to date, at version %d", now)
		return nil
	}
	a.say("precis: the schema is now at version %d", now)
	return nil
}
