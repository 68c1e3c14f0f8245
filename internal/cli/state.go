package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"precis/internal/api/wire"
	"precis/internal/cli/fail"
	"precis/internal/cli/term"
	"precis/internal/service"
)

type stateFlags struct {
	text, items string
	remove      bool
}

func (a *app) stateCommand() *cobra.Command {
	var f stateFlags
	cmd := &cobra.Command{
		Use:     "state CONVERSATION [KEY]",
		GroupID: groupMain,
		Short:   "Show and set the live state beside the summary: todo, plan, pins and others",
		Long: `Prints the live state of a conversation, or one KEY of it: the values that hold now, which every
compaction puts into the new context once. A KEY is skills, todo, plan, mode, project_root, automation,
transcripts_folder or pins, or one of your own that begins with x-. A new value takes effect at the start of the
next turn, or at the next compaction if that is earlier.`,
		Example: `  precis state my-agent
  precis state my-agent pins --text "Never deploy on Fridays."
  precis state my-agent todo --items '["read the logs", {"text": "write the test", "status": "done"}]'
  precis state my-agent todo --delete`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return nil
			}
			return exactArgs(1)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			changed := 0
			for _, name := range []string{"text", "items", "delete"} {
				if cmd.Flags().Changed(name) {
					changed++
				}
			}
			switch {
			case changed > 1:
				return fail.Usagef("--text, --items and --delete exclude each other")
			case changed == 1 && len(args) == 1:
				return fail.Usagef("--text, --items and --delete go with a KEY")
			}
			var value wire.StateValue
			switch {
			case cmd.Flags().Changed("text"):
				value.Text = &f.text
			case cmd.Flags().Changed("items"):
				if err := json.Unmarshal([]byte(f.items), &value.Items); err != nil {
					return fail.Usagef("--items is a JSON array, such as '[\"read the logs\"]': %s", err)
				}
			}
			return a.withStore(cmd, func(ctx context.Context, s *session) error {
				ref := service.ConversationRef{Tenant: a.tenant, ID: args[0]}
				if len(args) == 1 {
					return a.listState(ctx, s, ref)
				}
				return a.state(ctx, s, ref, args[1], value, changed > 0)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.text, "text", "", "set KEY to `TEXT`")
	flags.StringVar(&f.items, "items", "",
		"set KEY to a list: `JSON` with an array of texts, or of objects with text and status")
	flags.BoolVar(&f.remove, "delete", false, "remove KEY")
	return cmd
}

func (a *app) listState(ctx context.Context, s *session, ref service.ConversationRef) error {
	list, err := a.service(s).ListState(ctx, ref)
	if err != nil {
		return stateError(err, ref.ID)
	}
	if a.json {
		return a.printJSON(map[string]any{"state": list})
	}
	if len(list) == 0 {
		a.say("precis: conversation %s has no state", ref.ID)
		return nil
	}
	var t term.Table
	t.Row("KEY", "SET (UTC)", "VERSION", "VALUE")
	for _, e := range list {
		first, _, more := strings.Cut(stateText(e.StateValue), "\n")
		if more {
			first += " …"
		}
		t.Row(e.Key, e.Updated.Format("2006-01-02 15:04:05"), fmt.Sprint(e.Version), first)
	}
	t.Fit(3)
	return t.Write(a.out)
}

// state prints a key, after setting or removing it if change is true.
func (a *app) state(ctx context.Context, s *session, ref service.ConversationRef, key string, value wire.StateValue,
	change bool,
) error {
	var e wire.StateEntry
	var err error
	svc := a.service(s)
	remove := change && value.Text == nil && value.Items == nil
	switch {
	case remove:
		err = svc.DeleteState(ctx, ref, key)
	case change:
		e, err = svc.PutState(ctx, ref, key, value)
	default:
		if e, err = svc.GetState(ctx, ref, key); service.CodeOf(err) == service.CodeNotFound {
			if _, missing := svc.ListState(ctx, ref); missing == nil {
				return fmt.Errorf("conversation %s has no %s; `precis state %s` lists what it has", ref.ID, key, ref.ID)
			}
		}
	}
	switch {
	case err != nil:
		return stateError(err, ref.ID)
	case remove:
		a.say("precis: %s of conversation %s is removed", key, ref.ID)
		return nil
	case a.json:
		return a.printJSON(e)
	}
	return a.print(stateText(e.StateValue) + "\n")
}

// stateText returns a value for display: its text, or one item per line, as the client wrote it.
func stateText(v wire.StateValue) string {
	if v.Text != nil {
		return *v.Text
	}
	lines := make([]string, len(v.Items))
	for i, raw := range v.Items {
		if json.Unmarshal(raw, &lines[i]) != nil {
			lines[i] = string(raw)
		}
	}
	return strings.Join(lines, "\n")
}

func stateError(err error, id string) error {
	var e *service.Error
	if !errors.As(err, &e) {
		return err
	}
	switch {
	case e.Code == service.CodeNotFound:
		return noConversation(err, id)
	case e.Code == service.CodeInvalid && e.Field == "key":
		return fail.Usagef("KEY %s", e.Detail)
	case e.Code == service.CodeInvalid:
		return fail.Usagef("%s", strings.TrimPrefix(e.Field+": "+e.Detail, ": "))
	case e.Code == service.CodeUnavailable:
		return fail.Unreachablef("%s", e.Detail)
	}
	return err
}
