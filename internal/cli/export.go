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

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

func (a *app) exportCommand() *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use:     "export CONVERSATION",
		GroupID: groupAudit,
		Short:   "Write a conversation with its runs and their evidence to a file",
		Long: `Writes one file of JSON lines: the messages as they arrived, markers, runs with all their attempts,
model calls and texts, live state, timeline, and the seals that prove them. ` + "`precis import FILE`" + ` recreates
the conversation in another store, verified as far as seals cover it, with the same contexts byte for byte.
docs/export.md describes the file.`,
		Example: `  precis export my-agent-7 --out my-agent-7.jsonl`,
		Args:    exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if out != "" {
				if err := checkOut(out); err != nil {
					return err
				}
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				return a.export(ctx, s, service.ConversationRef{Tenant: a.tenant, ID: args[0]}, out)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`file` to write (default: standard output)")
	return cmd
}

func (a *app) export(ctx context.Context, s *session, ref service.ConversationRef, out string) error {
	rows, err := a.writeExport(ctx, s, ref, out)
	switch {
	case service.ContentDeleted(err):
		return fmt.Errorf("the content of conversation %q was deleted: there is nothing to export", ref.ID)
	case service.CodeOf(err) == service.CodeNotFound:
		return fmt.Errorf("there is no conversation %q", ref.ID)
	case service.CodeOf(err) == service.CodeRunActive:
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

// writeExport writes the file completely or not at all, and returns the number of rows by table.
func (a *app) writeExport(ctx context.Context, s *session, ref service.ConversationRef,
	out string,
) (rows map[string]int, err error) {
	if out == "" {
		rows, err = a.service(s).Export(ctx, ref, a.out)
		if full := (*fs.PathError)(nil); errors.As(err, &full) {
			err = fail.Written(full)
		}
		return rows, err
	}
	fresh, err := os.CreateTemp(filepath.Dir(out), "."+filepath.Base(out)+".*")
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", out, err)
	}
	rows, err = a.service(s).Export(ctx, ref, fresh)
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
	return service.IsExport(head[:n]), nil
}

// importExport recreates an exported conversation.
func (a *app) importExport(cmd *cobra.Command, in *input, f *inputFlags) error {
	if f.pick > 0 || f.model != "" || f.window > 0 || f.lenient {
		return fail.Usagef("%s is an export of precis, which is imported as it is: use no other flag than --id",
			in.name)
	}
	return a.withStore(cmd, func(ctx context.Context, s *session) error {
		im, err := a.service(s).ImportExport(ctx, a.tenant, f.id, in.rewind)
		switch {
		case service.CodeOf(err) == service.CodeInvalid:
			return fail.Usagef("%s was not imported, nothing of it is kept: %s", in.name, fail.Explain(err))
		case service.CodeOf(err) == service.CodeConflict:
			return fmt.Errorf("%s was not imported: its conversation exists already; --id gives it another id", in.name)
		case err != nil:
			return err
		}
		if a.json {
			return a.printJSON(map[string]any{"conversations": []any{map[string]any{
				"id": im.Ref.ID, "format": im.Format, "model": modelName(im.Vendor, im.Model), "window": im.Window,
				"messages": im.Messages, "compactions": im.Rows["markers"], "runs": im.Runs,
				"pruned": im.Pruned, "not_covered": service.NotCoveredInExport(),
			}}})
		}
		if err := a.print(im.Ref.ID + "\n"); err != nil {
			return err
		}
		a.say("precis: imported %s and %s, verified as far as seals and hashes cover them",
			term.Plural(int(im.Messages), "message"), term.Plural(len(im.Runs), "run"))
		if im.Pruned > 0 {
			a.say("precis: %s pruned before the export: only the hashes are verified",
				term.PluralWere(im.Pruned, "text"))
		}
		if notes := im.Notes; notes > 0 {
			a.say("precis: not covered by seals: %s", term.Plural(notes, "note"))
		}
		return nil
	})
}
