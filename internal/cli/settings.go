package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/service"
)

func (a *app) settingsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "settings",
		GroupID: groupAdmin,
		Short:   "Show and change what a tenant sets for all its conversations",
		Long: `Shows the settings of a conversation of the tenant that has none of its own, and where each comes
from. The most specific one applies: conversation, then tenant, then installation (file, variables, flags). A
change applies from the next run on; a run that was already requested keeps the settings of that moment.`,
		Example: `  precis settings --tenant acme
  precis settings set trigger.fraction=0.8 digest=never --tenant acme
  precis settings unset digest --tenant acme`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.withStore(cmd, a.showSettings) },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "set KEY=VALUE...",
			Short: "Set settings of the tenant; docs/settings.md lists the keys",
			Args:  someArgs,
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.changeSettings(cmd, args, func(arg string) (map[string]any, error) {
					key, value, ok := strings.Cut(arg, "=")
					if !ok {
						return nil, fail.Usagef("`%s` takes KEY=VALUE, not %q", cmd.CommandPath(), arg)
					}
					return config.SettingPatch(key, value, a.asTenant())
				})
			},
		},
		&cobra.Command{
			Use:   "unset KEY...",
			Short: "Unset settings of the tenant: those of the installation apply again",
			Args:  someArgs,
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.changeSettings(cmd, args, func(arg string) (map[string]any, error) {
					return config.UnsetPatch(arg, a.asTenant())
				})
			},
		},
	)
	return cmd
}

// someArgs requires at least one argument.
func someArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return nil
	}
	return exactArgs(1)(cmd, args)
}

func (a *app) asTenant() config.Origin {
	return config.Origin{Source: config.SourceTenant, Name: a.tenant}
}

func (a *app) showSettings(ctx context.Context, s *session) error {
	got, err := a.service(s).TenantSettings(ctx, a.tenant)
	if err != nil {
		return a.settingsError(err)
	}
	return a.printSettings(s, got)
}

// changeSettings merges the changes of all arguments, in order.
func (a *app) changeSettings(cmd *cobra.Command, args []string,
	patchOf func(arg string) (map[string]any, error),
) error {
	var patches []json.RawMessage
	for _, arg := range args {
		patch, err := patchOf(arg)
		if err != nil {
			return err
		}
		raw, err := json.Marshal(patch)
		if err != nil {
			return fmt.Errorf("encode %s: %w", arg, err)
		}
		patches = append(patches, raw)
	}
	return a.withStore(cmd, func(ctx context.Context, s *session) error {
		if err := a.ensureTenant(ctx, s); err != nil {
			return err
		}
		got, err := a.service(s).PatchTenantSettings(ctx, a.tenant, patches, true)
		if err != nil {
			return a.settingsError(err)
		}
		return a.printSettings(s, got)
	})
}

func (a *app) printSettings(s *session, got wire.TenantSettings) error {
	if a.json {
		return a.printJSON(got)
	}
	var own map[string]any
	if err := json.Unmarshal(got.Settings, &own); err != nil {
		return fmt.Errorf("read the tenant's settings: %w", err)
	}
	c := s.Config
	if err := json.Unmarshal(got.Effective, &c.Settings); err != nil {
		return fmt.Errorf("read the effective settings: %w", err)
	}
	var t term.Table
	t.Row("KEY", "VALUE", "FROM")
	for _, v := range config.SettingValues(c, s.Origins, own, a.asTenant()) {
		t.Row(strings.TrimPrefix(v.Key, "settings."), v.Value, v.From.String())
	}
	return a.printRows(t)
}

// settingsError turns an error of the service into one in terms of the command line.
func (a *app) settingsError(err error) error {
	var e *service.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code {
	case service.CodeNotFound:
		return fail.Usagef("there is no tenant %q", a.tenant)
	case service.CodeInvalid:
		return fail.Usagef("%s: %s", e.Field, e.Detail)
	case service.CodeUnavailable:
		return fail.Unreachablef("%s", e.Detail)
	}
	return err
}
