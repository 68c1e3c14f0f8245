package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/store"
	"precis/internal/store/access"
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

// apiKey is the JSON of an API key. Key is its secret, set only when the key was just made.
type apiKey struct {
	ID      string     `json:"id"`
	Key     string     `json:"key,omitempty"`
	Tenant  string     `json:"tenant"`
	Name    string     `json:"name"`
	Trusted bool       `json:"trusted"`
	Created time.Time  `json:"created"`
	Revoked *time.Time `json:"revoked"`
	// LastUsed is accurate to a minute; nil means never.
	LastUsed *time.Time `json:"last_used"`
}

func keyOf(k access.APIKey) apiKey {
	out := apiKey{ID: k.ID, Tenant: k.Tenant, Name: k.Name, Trusted: k.Trusted, Created: k.Created.UTC()}
	if !k.Revoked.IsZero() {
		revoked := k.Revoked.UTC()
		out.Revoked = &revoked
	}
	if !k.LastUsed.IsZero() {
		used := k.LastUsed.UTC()
		out.LastUsed = &used
	}
	return out
}

// createKey works on the store: keys are made by whoever has access to the database. The service, which acts for API
// clients, cannot make or list keys.
func (a *app) createKey(ctx context.Context, s *session, name string, trusted bool) error {
	if _, err := s.store.Tenants.Ensure(ctx, a.tenant, ""); err != nil {
		if errors.Is(err, store.ErrInvalid) {
			return fail.Usagef("%s", fail.Explain(err))
		}
		return err
	}
	k, secret, err := s.store.Keys.Create(ctx, a.tenant, name, trusted)
	if err != nil {
		return err
	}
	if a.json {
		out := keyOf(k)
		out.Key = secret
		return a.printJSON(out)
	}
	if err := a.print(secret + "\n"); err != nil {
		return err
	}
	a.say("precis: key %s of tenant %s; it is not shown again", k.ID, k.Tenant)
	return nil
}

func (a *app) listKeys(ctx context.Context, s *session) error {
	list, err := s.store.Keys.List(ctx, a.tenant)
	if err != nil {
		return err
	}
	out := make([]apiKey, len(list))
	for i, k := range list {
		out[i] = keyOf(k)
	}
	if a.json {
		return a.printJSON(out)
	}
	if len(out) == 0 {
		a.say("precis: tenant %s has no keys; `precis keys create` makes one", a.tenant)
		return nil
	}
	var t term.Table
	t.Row("ID", "NAME", "CREATED", "LAST USED", "TRUSTED", "STATE")
	for _, k := range out {
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
	err := s.store.Keys.Revoke(ctx, a.tenant, id)
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("tenant %s has no key %q; `precis keys list` shows its keys", a.tenant, id)
	}
	if err != nil {
		return err
	}
	a.say("precis: key %s is revoked", id)
	return nil
}
