package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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
	var flags newKeyFlags
	create := &cobra.Command{
		Use:   "create",
		Short: "Make a key and print it, once",
		Long: `Makes a key for the tenant of --tenant, and the tenant itself if it does not exist. Only the key is
printed on standard output; it cannot be shown again.`,
		Example: `  precis keys create --tenant acme --name production
  precis keys create --scope read --expires 30d`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			n, err := flags.key(a.tenant, time.Now())
			if err != nil {
				return err
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error { return a.createKey(ctx, s, n) })
		},
	}
	create.Flags().StringVar(&flags.name, "name", "", "`name` that distinguishes the key from others")
	create.Flags().StringVar(&flags.scope, "scope", string(service.ScopeWrite), "what the key may do: read, write "+
		"(read as well), or\nadmin (also report an agent's own compactions and raise budgets)")
	create.Flags().StringVar(&flags.expires, "expires", "", "`time` after which the key stops working: 12h, 30d, or a "+
		"date such as\n2027-01-31 (default never)")
	create.Flags().BoolVar(&flags.trusted, "trusted", false, "the same as --scope admin")
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

// newKeyFlags are the flags of `precis keys create`.
type newKeyFlags struct {
	name, scope, expires string
	trusted              bool
}

func (f newKeyFlags) key(tenant string, now time.Time) (service.NewKey, error) {
	n := service.NewKey{Tenant: tenant, Name: f.name}
	var err error
	if n.Scope, err = service.ParseScope(f.scope); err != nil {
		return n, fail.Usagef("--scope: %s", err)
	}
	if f.trusted {
		n.Scope = service.ScopeAdmin
	}
	if f.expires == "" {
		return n, nil
	}
	if n.Expires, err = expiry(f.expires, now); err != nil {
		return n, fail.Usagef("--expires: %s", err)
	}
	return n, nil
}

// expiry reads when a key stops working: a time from now on in hours, minutes or days, or a date or time.
func expiry(text string, now time.Time) (time.Time, error) {
	const day = 24 * time.Hour
	var at time.Time
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 1 || n > 36_500 {
			return at, fmt.Errorf("%q is not a number of days from 1 to 36500, such as 30d", text)
		}
		return now.Add(time.Duration(n) * day), nil
	}
	if d, err := time.ParseDuration(text); err == nil {
		at = now.Add(d)
	} else if at, err = time.Parse(time.RFC3339, text); err != nil {
		if at, err = time.Parse(time.DateOnly, text); err != nil {
			return at, fmt.Errorf("%q is not a time: write 12h, 30d, 2027-01-31 or 2027-01-31T12:00:00Z", text)
		}
	}
	if !at.After(now) {
		return at, fmt.Errorf("%q is not in the future", text)
	}
	return at, nil
}

// createKey creates the tenant of the key too, if it does not exist.
func (a *app) createKey(ctx context.Context, s *session, n service.NewKey) error {
	if err := a.ensureTenant(ctx, s); err != nil {
		return err
	}
	k, err := a.service(s).CreateKey(ctx, n)
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
	t.Row("ID", "NAME", "SCOPE", "CREATED", "EXPIRES", "LAST USED", "TRUSTED", "STATE")
	for _, k := range list {
		state, may, used, expires := "works", "no", "never", "never"
		if k.Expires != nil {
			expires = k.Expires.Format(time.RFC3339)
			if !k.Expires.After(time.Now()) {
				state = "expired"
			}
		}
		if k.LastUsed != nil {
			used = k.LastUsed.Format(time.RFC3339)
		}
		if k.Revoked != nil {
			state = "revoked " + k.Revoked.Format(time.RFC3339)
		}
		if k.Trusted {
			may = "yes"
		}
		t.Row(k.ID, k.Name, string(k.Scope), k.Created.Format(time.RFC3339), expires, used, may, state)
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
