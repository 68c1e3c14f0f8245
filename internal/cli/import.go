package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
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
) ([]service.Imported, error) {
	d, err := in.decoder(f)
	if err != nil {
		return nil, err
	}
	req, err := f.importRequest()
	if err != nil {
		return nil, err
	}
	p := a.progress()
	defer p.Clear()
	req.Ephemeral, req.Progress = ephemeral, p.Messages(in.name)
	return a.importTranscript(ctx, s, d, req)
}

// importTranscript imports a transcript. One that cannot be stored is an error of usage.
func (a *app) importTranscript(ctx context.Context, s *session, d *transcript.Decoder,
	req service.ImportRequest,
) ([]service.Imported, error) {
	imported, err := a.service(s).ImportTranscript(ctx, a.tenant, d, req)
	switch service.CodeOf(err) {
	case service.CodeNotFound:
		return nil, fail.Usagef("there is no tenant %q", a.tenant)
	case service.CodeInvalid:
		return nil, fail.Usage(err)
	}
	return imported, err
}

func (a *app) printImported(imported []service.Imported, found contents) error {
	var reports []importedReport
	for _, im := range imported {
		reports = append(reports, importedReport{
			ID: im.Ref.ID, Format: im.Meta.Format, Model: modelName(im.Vendor, im.Model), Window: im.Window,
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
