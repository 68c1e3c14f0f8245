package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

func (a *app) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "keys",
		GroupID: groupAdmin,
		Short:   "Make, list and revoke the API keys of a tenant",
		Long: `An API key names the tenant of a request to the HTTP API. Only its hash is stored: a key is shown
once, when it is made. As long as no key was ever made, the API listens on loopback only and needs none; after
the first one it requires a key, even if all keys are revoked.`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var name string
	var trusted bool
	create := &cobra.Command{
		Use:   "create",
		Short: "Make a key and print it, once",
		Long: `Makes a key for the tenant of --tenant, and the tenant itself if it does not exist. Only the key is
printed on standard output; it cannot be shown again.`,
		Example: `  precis keys create --tenant acme --name production`,
		Args:    exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd, func(ctx context.Context,
				s *session,
			) error {
				return a.createKey(ctx, s, name, trusted)
			})
		},
	}
	create.Flags().StringVar(&name, "name", "", "`name` that distinguishes the key from others")
	create.Flags().BoolVar(&trusted, "trusted", false,
		"allow it to report compactions that an agent's own runtime did (POST …/markers)")
	list := &cobra.Command{
		Use:   "list",
		Short: "List the tenant's keys, without their secrets",
		Args:  exactArgs(0),
		RunE:  func(cmd *cobra.Command, _ []string) error { return a.withStore(cmd, a.listKeys) },
	}
	revoke := &cobra.Command{
		Use:   "revoke ID",
		Short: "Revoke a key, immediately and permanently",
		Args:  exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd, func(ctx context.Context, s *session) error { return a.revokeKey(ctx, s, args[0]) })
		},
	}
	cmd.AddCommand(create, list, revoke)
	return cmd
}

// createKey creates the tenant of the key too, if it does not exist.
func (a *app) createKey(ctx context.Context, s *session, name string, trusted bool) error {
	if err := a.ensureTenant(ctx, s); err != nil {
		return err
	}
	k, err := a.service(s).CreateKey(ctx, a.tenant, name, trusted)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(k)
	}
	if err := a.print(k.Key + "\n"); err != nil {
		return err
	}
	a.say("precis: key %s of tenant %s; it is not shown again", k.ID, k.Tenant)
	return nil
}

// ensureTenant creates the tenant of --tenant unless it exists.
func (a *app) ensureTenant(ctx context.Context, s *session) error {
	err := a.service(s).EnsureTenant(ctx, a.tenant)
	if service.CodeOf(err) == service.CodeInvalid {
		return fail.Usagef("%s", fail.Explain(err))
	}
	return err
}

func (a *app) listKeys(ctx context.Context, s *session) error {
	list, err := a.service(s).ListKeys(ctx, a.tenant)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(list)
	}
	if len(list) == 0 {
		a.say("precis: tenant %s has no keys; `precis keys create` makes one", a.tenant)
		return nil
	}
	var t term.Table
	t.Row("ID", "NAME", "CREATED", "LAST USED", "TRUSTED", "STATE")
	for _, k := range list {
		state, may, used := "works", "no", "never"
		if k.LastUsed != nil {
			used = k.LastUsed.Format(time.RFC3339)
		}
		if k.Revoked != nil {
			state = "revoked " + k.Revoked.Format(time.RFC3339)
		}
		if k.Trusted {
			may = "yes"
		}
		t.Row(k.ID, k.Name, k.Created.Format(time.RFC3339), used, may, state)
	}
	return a.printRows(t)
}

func (a *app) revokeKey(ctx context.Context, s *session, id string) error {
	err := a.service(s).RevokeKey(ctx, a.tenant, id)
	if service.CodeOf(err) == service.CodeNotFound {
		return fmt.Errorf("tenant %s has no key %q; `precis keys list` shows its keys", a.tenant, id)
	}
	if err != nil {
		return err
	}
	a.say("precis: key %s is revoked", id)
	return nil
}
