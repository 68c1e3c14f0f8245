package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

type pruneFlags struct {
	olderThan, conversation string
	kinds                   []string
	apply, restart          bool
}

func (a *app) pruneCommand() *cobra.Command {
	f := &pruneFlags{}
	cmd := &cobra.Command{
		Use:     "prune --older-than AGE",
		GroupID: groupAudit,
		Short:   "Remove old prompts, answers, contexts and tool results, or list them first",
		Long: `Without --apply it shows what would be removed, and changes nothing. Removed content leaves its hash,
so that ` + "`precis verify`" + ` still proves the rest and distinguishes pruned from tampered. Some content is kept
at any age: what a context shows now, or would show after one undo; every summary; and everything of a
conversation while one of its runs is under way. An undo further back shows placeholders for tool results that
were pruned.

It works on all tenants unless --tenant names one, in small transactions that never wait for a lock longer than
a second. If it is interrupted, the same command continues where it stopped.`,
		Example: `  precis prune --older-than 30d
  precis prune --older-than 30d --kind prompts,answers --apply`,
		Args: exactArgs(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.request(time.Now())
			if err != nil {
				return err
			}
			if f.conversation != "" || cmd.Flags().Changed("tenant") {
				p.Tenant = a.tenant
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				if err := a.conversationExists(ctx, s, f.conversation); err != nil {
					return err
				}
				return a.prune(ctx, s, p)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.olderThan, "older-than", "", "what was last used before a `time`: a date, or an age such as 30d")
	flags.StringSliceVar(&f.kinds, "kind", service.PruneKinds(),
		"`kinds` of content: "+strings.Join(service.PruneKinds(), ", "))
	flags.StringVar(&f.conversation, "conversation", "", "only content of one `conversation`")
	flags.BoolVar(&f.apply, "apply", false, "remove the content; without this flag nothing changes")
	flags.BoolVar(&f.restart, "restart", false, "start from the beginning, even if an earlier call was interrupted")
	return cmd
}

// request returns what the flags select, of all tenants.
func (f *pruneFlags) request(now time.Time) (service.PruneRequest, error) {
	p := service.PruneRequest{
		SweepRequest: service.SweepRequest{Conversation: f.conversation, Restart: f.restart},
		Kinds:        f.kinds, Apply: f.apply,
	}
	if f.olderThan == "" {
		return p, fail.Usagef("`precis prune` needs --older-than, such as --older-than 30d")
	}
	var err error
	if p.Before, err = moment("--older-than", f.olderThan, now); err != nil {
		return p, err
	}
	for _, kind := range f.kinds {
		if !slices.Contains(service.PruneKinds(), kind) {
			return p, fail.Usagef("--kind: there is no kind %q; they are %s", kind,
				strings.Join(service.PruneKinds(), ", "))
		}
	}
	return p, nil
}

// prune removes or lists old content, of all tenants if the request names none.
func (a *app) prune(ctx context.Context, s *session, p service.PruneRequest) error {
	line := a.progress()
	defer line.Clear()
	totals, err := a.service(s).Prune(ctx, p, func(t service.PruneTotals) {
		line.Line("looked through %s of %s", term.Count(t.Conversations), term.Plural(t.Total, "conversation"))
	})
	line.Clear()
	if err != nil {
		if ctx.Err() != nil {
			a.say("precis: interrupted after %s of %s; the same command continues from there",
				term.Count(totals.Conversations), term.Plural(totals.Total, "conversation"))
		}
		return err
	}
	if a.json {
		return a.printJSON(totals)
	}
	if len(totals.Kinds) > 0 {
		var t term.Table
		t.Row("KIND", "TEXTS", "BYTES")
		for _, kind := range slices.Sorted(maps.Keys(totals.Kinds)) {
			t.Row(kind, term.Count(totals.Kinds[kind].Count), term.Count(int(totals.Kinds[kind].Bytes)))
		}
		if err := a.printRows(t); err != nil {
			return err
		}
	}
	a.say("%s", prunedWords(totals))
	return nil
}

// prunedWords returns the result as a sentence.
func prunedWords(t service.PruneTotals) string {
	var n int
	var bytes int64
	for _, sum := range t.Kinds {
		n += sum.Count
		bytes += sum.Bytes
	}
	words := fmt.Sprintf("precis: %s in %s: ", term.Plural(n, "text"), term.Plural(t.Conversations, "conversation"))
	switch {
	case n == 0:
		words += "nothing to prune"
	case t.Applied:
		words += term.Count(int(bytes)) + " bytes pruned; PostgreSQL frees the space with its next vacuum"
	default:
		words += term.Count(int(bytes)) + " bytes would be removed; --apply removes them"
	}
	if t.Busy > 0 {
		words += fmt.Sprintf("; %s in use and skipped", term.Plural(t.Busy, "conversation"))
	}
	return words
}
