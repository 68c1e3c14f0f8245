package cli

import (
	"github.com/spf13/cobra"

	"precis/internal/cli/term"
	"precis/internal/config"
)

func (a *app) configCommand() *cobra.Command {
	var describe bool
	cmd := &cobra.Command{
		Use:     "config",
		GroupID: groupAdmin,
		Short:   "Print the effective configuration, and the origin of each value",
		Long: `Prints the effective configuration, secrets masked, with the file and line, the variable or the flag
that each value came from. --describe prints all known keys instead.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if describe {
				return a.describeConfig()
			}
			return a.showConfig(cmd)
		},
	}
	cmd.Flags().BoolVar(&describe, "describe", false, "print every key with its default, unit and effect")
	return cmd
}

func (a *app) showConfig(cmd *cobra.Command) error {
	cfg, origins, err := a.config(cmd)
	if err != nil {
		return err
	}
	values := config.Values(cfg, origins)
	if a.json {
		return a.printJSON(values)
	}
	var t term.Table
	t.Row("KEY", "VALUE", "FROM")
	for _, v := range values {
		t.Row(v.Key, v.Value, v.From.String())
	}
	return a.printRows(t)
}

func (a *app) describeConfig() error {
	keys := config.Describe()
	if a.json {
		return a.printJSON(keys)
	}
	for i, k := range keys {
		if i > 0 {
			if err := a.print("\n"); err != nil {
				return err
			}
		}
		text := k.Name + "  (" + k.Type
		if k.Unit != "" {
			text += ", " + k.Unit
		}
		if k.Default != "" {
			text += ", default " + k.Default
		}
		text += ")\n"
		for _, line := range term.Wrap(k.Effect, 110) {
			text += "  " + line + "\n"
		}
		if k.Variable != "" {
			text += "  $" + k.Variable
			if k.Flag != "" {
				text += "  --" + k.Flag
			}
			text += "\n"
		}
		if err := a.print(text); err != nil {
			return err
		}
	}
	return nil
}
