package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

type headsFlags struct {
	conversation string
	sign         bool
}

func (a *app) headsCommand() *cobra.Command {
	f := &headsFlags{}
	cmd := &cobra.Command{
		Use:     "heads",
		GroupID: groupAudit,
		Short:   "Print the head of every conversation's record, to keep outside of the database",
		Long: `Prints a line of JSON for each conversation, of all tenants unless --tenant names one: the number of its
seals, the hash that commits to all of them, the number of messages and the time; signed if audit.signing_key is
configured. Keep the lines where nobody who can write to the database can change them. ` +
			"`precis verify --heads FILE`" + `
shows later whether the database still has every record that they commit to: a record that was rewritten together
with all its hashes is found, and so is a conversation that was removed.

--sign also signs each head in the database, for conversations that were sealed before there was a key. Verify
them first: a signature says that they are what they were at this moment.`,
		Example: `  precis heads > heads-$(date +%F).jsonl
  precis verify --heads heads-2026-11-30.jsonl`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				if f.sign && s.Config.Audit.SigningKey == "" {
					return fail.Usagef("--sign needs a key: configure audit.signing_key")
				}
				if err := a.conversationExists(ctx, s, f.conversation); err != nil {
					return err
				}
				req := service.HeadsRequest{Conversation: f.conversation, Sign: f.sign}
				if f.conversation != "" || cmd.Flags().Changed("tenant") {
					req.Tenant = a.tenant
				}
				return a.service(s).Heads(ctx, req, a.printHead)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.conversation, "conversation", "", "only the head of one `conversation`")
	flags.BoolVar(&f.sign, "sign", false, "also sign the heads in the database")
	return cmd
}

func (a *app) printHead(h service.Head) error {
	line, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("encode a head: %w", err)
	}
	return a.print(string(line) + "\n")
}

// verifyHeads compares the store with the heads in a file, and prints what differs.
func (a *app) verifyHeads(ctx context.Context, s *session, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fail.Usagef("the heads cannot be read: %s", err)
	}
	defer func() { _ = file.Close() }()
	r, err := a.service(s).VerifyHeads(ctx, file)
	switch {
	case service.CodeOf(err) == service.CodeInvalid:
		return fail.Usagef("%s: %s", path, fail.Explain(err))
	case err != nil:
		return err
	case a.json:
		err = a.printJSON(r)
	default:
		for _, f := range r.Failures {
			if err := a.print(fmt.Sprintf("%-8s  conversation %s (tenant %s): %s\n", f.State,
				term.Printable(f.Conversation), term.Printable(f.Tenant), f.Detail)); err != nil {
				return err
			}
		}
		err = a.print(fmt.Sprintf("%s compared: %s not extended by the database, %s deleted since, with a tombstone\n",
			term.Plural(r.Heads, "head"), term.Count(r.Failed), term.Count(r.Deleted)))
	}
	if err == nil && r.Failed > 0 {
		return fail.Silent(fail.ExitFailed)
	}
	return err
}
