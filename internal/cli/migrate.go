package cli

import (
	"github.com/spf13/cobra"

	"precis/internal/devstack"
	"precis/internal/store/schema"
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

// migrate works on the schema alone: store and service cannot be opened before it is up to date.
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
	before, err := schema.Read(ctx, url)
	if err != nil {
		return err
	}
	if before.Current > before.Latest {
		return checkSchema(ctx, url)
	}
	if err := schema.Migrate(ctx, url, func(line string) { a.say("%s", line) }); err != nil {
		return err
	}
	after, err := schema.Read(ctx, url)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(map[string]int64{"before": before.Current, "now": after.Current})
	}
	if before.Current == after.Current {
		a.say("precis: the schema is up to date, at version %d", after.Current)
		return nil
	}
	a.say("precis: the schema is now at version %d", after.Current)
	return nil
}
