package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"precis/internal/audit"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/store"
	"precis/internal/store/exports"
	"precis/internal/version"
)

func (a *app) exportCommand() *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:     "export CONVERSATION",
		GroupID: groupAudit,
		Short:   "Write a conversation with its runs and their evidence to a file",
		Long: `Writes one file of JSON lines: the messages as they arrived, markers, runs with all their attempts,
model calls and texts, live state, timeline, and the seals that prove them. ` + "`precis import FILE`" + ` recreates
the conversation in another store, verified, with the same contexts byte for byte. docs/export.md describes the
file.`,
		Example: `  precis export my-agent-7 --out my-agent-7.jsonl`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out != "" {
				if err := checkOut(out); err != nil {
					return err
				}
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				return a.export(ctx, s, store.ConversationRef{Tenant: a.tenant, ID: args[0]}, out)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`file` to write (default: standard output)")
	return cmd
}

func (a *app) export(ctx context.Context, s *session, ref store.ConversationRef, out string) error {
	rows, err := a.writeExport(ctx, s, ref, out)
	switch {
	case errors.Is(err, store.ErrContentDeleted):
		return fmt.Errorf("the content of conversation %q was deleted: there is nothing to export", ref.ID)
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("there is no conversation %q", ref.ID)
	case errors.Is(err, store.ErrRunActive):
		return fmt.Errorf("a run of conversation %q is under way: export the conversation when the run has ended",
			ref.ID)
	case err != nil:
		return err
	}
	if out == "" {
		a.say("precis: exported %s and %s", term.Plural(rows["messages"], "message"), term.Plural(rows["runs"], "run"))
		return nil
	}
	if a.json {
		return a.printJSON(map[string]any{"conversation": ref.ID, "out": out, "rows": rows})
	}
	a.say("precis: wrote %s: %s and %s", out, term.Plural(rows["messages"], "message"),
		term.Plural(rows["runs"], "run"))
	return nil
}

// writeExport writes the file completely or not at all, and returns the number of rows by table. It works below the
// service, whose Export does not count rows.
func (a *app) writeExport(ctx context.Context, s *session, ref store.ConversationRef,
	out string,
) (rows map[string]int, err error) {
	if out == "" {
		rows, err = audit.Export(ctx, s.store, ref, version.Code(), a.out)
		if full := (*fs.PathError)(nil); errors.As(err, &full) {
			err = fail.Written(full)
		}
		return rows, err
	}
	fresh, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", out, err)
	}
	rows, err = audit.Export(ctx, s.store, ref, version.Code(), fresh)
	err = errors.Join(err, fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), out)
	}
	if err != nil {
		return nil, errors.Join(err, os.Remove(fresh.Name()))
	}
	return rows, nil
}

// isExport reports whether a file begins as an export does.
func isExport(in *input) (bool, error) {
	r, err := in.rewind()
	if err != nil {
		return false, err
	}
	head := make([]byte, 256)
	n, err := io.ReadFull(r, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, fmt.Errorf("read %s: %w", in.name, err)
	}
	return audit.IsExport(head[:n]), nil
}

// importExport recreates an exported conversation. Only the command line imports exports, so that the service has no
// method for it.
func (a *app) importExport(cmd *cobra.Command, in *input, f *inputFlags) error {
	if f.pick > 0 || f.model != "" || f.window > 0 || f.lenient {
		return fail.Usagef("%s is an export of precis, which is imported as it is: use no other flag than --id",
			in.name)
	}
	return a.withStore(cmd, func(ctx context.Context, s *session) error {
		im, err := audit.Import(ctx, s.store, exports.Target{Tenant: a.tenant, ID: f.id}, in.rewind)
		switch {
		case errors.Is(err, store.ErrInvalid):
			return fail.Usagef("%s was not imported, nothing of it is kept: %s", in.name, err)
		case errors.Is(err, store.ErrConflict):
			return fmt.Errorf("%s was not imported: its conversation exists already; --id gives it another id", in.name)
		case err != nil:
			return err
		}
		c := im.Conversation
		if a.json {
			return a.printJSON(map[string]any{"conversations": []any{map[string]any{
				"id": c.Ref.ID, "format": c.Format, "model": modelName(c.Vendor, c.Model), "window": c.Window,
				"messages": c.HeadSeq, "compactions": im.Rows["markers"], "runs": im.Runs,
			}}})
		}
		if err := a.print(c.Ref.ID + "\n"); err != nil {
			return err
		}
		a.say("precis: imported %s and %s, all verified", term.Plural(int(c.HeadSeq), "message"),
			term.Plural(len(im.Runs), "run"))
		return nil
	})
}
