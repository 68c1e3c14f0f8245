package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"precis/internal/cli/term"
	"precis/internal/conversation"
	"precis/pipeline/transcript"
)

func (a *app) importCommand() *cobra.Command {
	f := &inputFlags{}
	cmd := &cobra.Command{
		Use:     "import FILE",
		GroupID: groupMain,
		Short:   "Store the conversations of a transcript",
		Long: `Reads a transcript (- is standard input) and stores each conversation in it, without compacting.
Compactions that the agent recorded in it take effect: the messages before them are covered, as they were for
the agent.

A file of ` + "`precis export`" + ` is recreated as it was, with its runs and their evidence. It is verified, and
imported completely or not at all.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.importFile(cmd, args[0], f) },
	}
	cmd.Flags().SortFlags = false
	f.add(cmd.Flags())
	return cmd
}

// importedReport is one conversation that was stored.
type importedReport struct {
	ID          string            `json:"id"`
	Format      transcript.Format `json:"format"`
	Model       string            `json:"model"`
	Window      int               `json:"window"`
	Messages    int               `json:"messages"`
	Compactions int               `json:"compactions"`
}

func (a *app) importFile(cmd *cobra.Command, path string, f *inputFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	in, err := a.openInput(cmd.Context(), path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	switch ours, err := isExport(in); {
	case err != nil:
		return err
	case ours:
		return a.importExport(cmd, in, f)
	}
	found, err := in.scan(f)
	if err != nil {
		return err
	}
	return a.withStore(cmd, func(ctx context.Context, s *session) error {
		imported, err := a.storeFile(ctx, s, in, f, false)
		if err != nil {
			return err
		}
		return a.printImported(imported, found)
	})
}

// storeFile imports a file that scan has read. After an error nothing of it is kept.
func (a *app) storeFile(ctx context.Context, s *session, in *input, f *inputFlags,
	ephemeral bool,
) (conversation.Import, error) {
	d, err := in.decoder(f)
	if err != nil {
		return conversation.Import{}, err
	}
	o, err := f.importOptions(a.tenant)
	if err != nil {
		return conversation.Import{}, err
	}
	p := a.progress()
	defer p.Clear()
	o.Ephemeral, o.Progress = ephemeral, p.Messages(in.name)
	o.Models = conversation.ModelsOf(s.config.Models)
	imported, err := conversation.ImportFile(ctx, s.store, d, o)
	if err != nil {
		a.forget(ctx, s, imported.Conversations)
		return imported, a.importError(err)
	}
	return imported, nil
}

func (a *app) printImported(imported conversation.Import, found contents) error {
	var reports []importedReport
	for _, im := range imported.Conversations {
		c := im.Conversation
		reports = append(reports, importedReport{
			ID: c.Ref.ID, Format: im.Meta.Format, Model: modelName(c.Vendor, c.Model), Window: c.Window,
			Messages: im.Messages, Compactions: im.Compactions,
		})
	}
	if a.json {
		return a.printJSON(map[string]any{"conversations": reports, "notes": notesOf(found.notes)})
	}
	a.printNotes(found.notes)
	var t term.Table
	t.Row("CONVERSATION", "FORMAT", "MESSAGES", "COMPACTIONS", "MODEL", "WINDOW")
	for _, r := range reports {
		t.Row(r.ID, string(r.Format), fmt.Sprint(r.Messages), fmt.Sprint(r.Compactions), r.Model, windowWords(r.Window))
	}
	return a.printRows(t)
}

func modelName(vendor, model string) string {
	if vendor == "" || model == "" {
		return vendor + model
	}
	return vendor + "/" + model
}

func windowWords(window int) string {
	if window == 0 {
		return "unknown"
	}
	return term.Count(window)
}
