package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/version"
)

// app is what all commands share.
type app struct {
	in       io.Reader
	out, err io.Writer
	// json selects JSON on standard output; tenant owns what is read and written.
	json   bool
	tenant string
}

// Run executes one command line and returns the exit code.
func Run(args []string, in io.Reader, out, err io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	// The second signal ends the program at once, whatever it is cleaning up.
	context.AfterFunc(ctx, stop)
	// A reader that closes early, as in `precis runs | head`, is an error like any other, so that a stack that was
	// started for the call is stopped again.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)

	a := &app{in: in, out: out, err: err}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(err)
	result := root.ExecuteContext(ctx)
	if ctx.Err() != nil && result != nil && !fail.IsSilent(result) {
		result = context.Canceled // the interrupted code may have returned any error
	}
	return a.report(result)
}

// The groups of the help text.
const (
	groupMain  = "main"
	groupStack = "stack"
	groupAudit = "audit"
	groupAdmin = "admin"
)

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "precis",
		Short: "Durable context compaction for agents",
		Long: `precis makes room in an agent's context: it replaces the older part of a conversation by a summary
that is checked against it, and keeps the newer part as it is. Each run is a Temporal workflow that survives
crashes, and every stage of it is recorded.

Results go to standard output, reports to standard error. Exit codes: 0 done, 1 failed, 2 usage (a wrong flag,
configuration or input file), 3 the database or Temporal is not reachable.`,
		Example: `  precis demo                          see it work, on a stack of its own
  precis compact session.jsonl         the compacted context of a transcript
  precis show RUN                      what a run did, stage by stage`,
		Version:                    version.Text(),
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       knownCommand,
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		CompletionOptions:          cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate("precis {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fail.Usagef("%s; `%s --help` lists the flags", err, cmd.CommandPath())
	})
	root.AddGroup(
		&cobra.Group{ID: groupMain, Title: "Compact:"},
		&cobra.Group{ID: groupStack, Title: "The local stack:"},
		&cobra.Group{ID: groupAudit, Title: "What was done:"},
		&cobra.Group{ID: groupAdmin, Title: "Set up:"},
	)
	root.SetHelpCommandGroupID(groupAdmin)
	flags := root.PersistentFlags()
	flags.BoolVar(&a.json, "json", false, "print JSON on standard output")
	flags.StringVar(&a.tenant, "tenant", service.DefaultTenant, "`tenant` that owns the conversations")
	config.AddFlags(flags)
	flags.SortFlags = false

	root.AddCommand(
		a.compactCommand(), a.demoCommand(), a.importCommand(), a.contextCommand(), a.undoCommand(), a.stateCommand(),
		a.upCommand(), a.downCommand(), a.statusCommand(), a.readyCommand(), a.serveCommand(), a.mcpCommand(),
		a.workerCommand(), a.runsCommand(), a.showCommand(), a.usageCommand(), a.replayCommand(), a.evalCommand(),
		a.verifyCommand(), a.headsCommand(), a.pruneCommand(), a.exportCommand(),
		a.doctorCommand(), a.configCommand(), a.migrateCommand(), a.keysCommand(), a.settingsCommand(),
	)
	return root
}

// knownCommand returns an error for an argument that is not the name of a command.
func knownCommand(root *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if like := root.SuggestionsFor(args[0]); len(like) > 0 {
		return fail.Usagef("there is no command %q; did you mean %s?", args[0], strings.Join(like, " or "))
	}
	return fail.Usagef("there is no command %q; `precis --help` lists them", args[0])
}

// exactArgs requires the n arguments that the usage line names.
func exactArgs(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		if n == 0 {
			return fail.Usagef("`%s` takes no arguments, not %q", cmd.CommandPath(), args[0])
		}
		_, wanted, _ := strings.Cut(cmd.Use, " ")
		if len(args) < n {
			return fail.Usagef("`%s` needs %s; `%s --help` shows the usage", cmd.CommandPath(), wanted,
				cmd.CommandPath())
		}
		return fail.Usagef("`%s` takes %s alone, not also %q", cmd.CommandPath(), wanted, args[n])
	}
}

// config loads the effective configuration with the command's flags.
func (a *app) config(cmd *cobra.Command) (config.Config, config.Origins, error) {
	return config.Load(config.LoadOptions{Flags: cmd.Flags()})
}

// configArgs returns the configuration flags that were given, as arguments for another precis process.
func configArgs(cmd *cobra.Command) []string {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.AddFlags(known)
	var args []string
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if known.Lookup(f.Name) == nil {
			return
		}
		values := []string{f.Value.String()}
		if many, ok := f.Value.(pflag.SliceValue); ok {
			values = many.GetSlice()
		}
		for _, v := range values {
			args = append(args, fmt.Sprintf("--%s=%s", f.Name, v))
		}
	})
	return args
}

// report prints an error and returns the exit code.
func (a *app) report(err error) int {
	code := fail.Code(err)
	if err != nil && !fail.IsSilent(err) {
		a.say("precis: %s", fail.Explain(err))
	}
	return code
}

// printJSON writes a value as indented JSON, without HTML escapes.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return fail.Written(enc.Encode(v))
}

// say writes a line to standard error. Ids, titles and messages of errors in it come from others: what a terminal would
// interpret is taken out.
func (a *app) say(format string, args ...any) {
	_, _ = io.WriteString(a.err, term.Printable(fmt.Sprintf(format, args...))+"\n")
}

// print writes to standard output.
func (a *app) print(text string) error {
	_, err := io.WriteString(a.out, text)
	return fail.Written(err)
}

func (a *app) progress() *term.Progress { return term.NewProgress(a.err) }
