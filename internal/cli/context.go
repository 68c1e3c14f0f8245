package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
)

func (a *app) contextCommand() *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:     "context CONVERSATION",
		GroupID: groupMain,
		Short:   "Print what the model of a conversation would see now",
		Long: `Prints the context of a stored conversation: system prompt, summary, and the messages that are kept
verbatim, trimmed as they would be sent. Its size goes to standard error.`,
		Args: exactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if to != "" {
				if err := knownFormat("--to", to); err != nil {
					return err
				}
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				return a.context(ctx, s, args[0], transcript.Format(to))
			})
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "`format` of the output (default: the conversation's own)")
	return cmd
}

// contextReport is the JSON of `precis context`, with the fields of the HTTP API.
type contextReport struct {
	System   json.RawMessage   `json:"system,omitempty"`
	Tools    json.RawMessage   `json:"tools,omitempty"`
	Messages []json.RawMessage `json:"messages"`
	Stats    wire.ContextStats `json:"stats"`
	Losses   []lossReport      `json:"losses,omitempty"`
}

// context prints a context in the form of a file of a client.
func (a *app) context(ctx context.Context, s *session, id string, to transcript.Format) error {
	built, err := a.service(s).BuildContext(ctx, service.ConversationRef{Tenant: a.tenant, ID: id})
	if err != nil {
		return noConversation(err, id)
	}
	out := transcript.Output{Meta: built.Meta, Items: built.Items, Sendable: true}
	if to == "" {
		to = out.Meta.Format
	}
	if a.json {
		converted, err := convert.Conversation(out.Meta, out.Items, to)
		if err != nil {
			return usageTarget(err)
		}
		messages, losses, err := nativeMessages(out, to)
		if err != nil {
			return err
		}
		return a.printJSON(contextReport{
			System: converted.Meta.System, Tools: converted.Meta.Tools, Messages: messages, Stats: built.Stats,
			Losses: lossesOf(losses),
		})
	}
	var buffer bytes.Buffer
	losses, err := convert.WriteFile(&buffer, to, out)
	if err != nil {
		return usageTarget(err)
	}
	if err := a.print(buffer.String()); err != nil {
		return err
	}
	a.printLosses(losses)
	a.printStats(built.Stats, len(built.Items))
	return nil
}

// printStats prints the size of a context.
func (a *app) printStats(s wire.ContextStats, messages int) {
	window := term.Count(s.Window)
	if s.WindowGuessed {
		window += " (a guess: the model's window is not known)"
	}
	a.say("context:   %s, %s of %s tokens, %.0f %%", term.Plural(messages, "message"),
		term.Tokens(s.Tokens, s.Estimated), window,
		100*s.Fraction)
	if m := s.Marker; m != nil {
		what := "a summary"
		if m.Digest {
			what = "a digest"
		}
		a.say("covered:   messages %d to %d by %s", m.CoversFrom, m.CoversTo, what)
	}
	if words := trimmedWords(s.Trimmed); words != "" {
		a.say("trimmed:   %s; ≈%s tokens saved", words, term.Count(s.Trimmed.SavedTokens))
	}
	if s.Prepared != nil {
		a.say("prepared:  the summary of run %s waits to take effect", *s.Prepared)
	}
	if s.Nudge {
		a.say("           a compaction is due: one starts automatically at %s tokens", term.Count(s.Limit))
	}
}

func trimmedWords(t wire.Trimmed) string {
	var parts []string
	for _, p := range []struct {
		n    int
		noun string
	}{{t.Binaries, "binary part"}, {t.ToolResults, "tool result"}, {t.DroppedTurns, "turn"}} {
		if p.n > 0 {
			parts = append(parts, term.Plural(p.n, p.noun))
		}
	}
	return strings.Join(parts, ", ")
}

// usageTarget makes a failed conversion to the format of --to an error of usage.
func usageTarget(err error) error { return fail.Usage(fmt.Errorf("--to: %s", fail.Explain(err))) }
