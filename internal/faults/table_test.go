package faults

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"precis/pipeline"
)

var update = flag.Bool("update", false, "write docs/faults.md instead of comparing it")

const tablePath = "../../docs/faults.md"

// rule is what makes a whole kind of fault impossible, and the files where it lives.
type rule struct {
	says  string
	where []string
}

// kinds are those of the collection.
var kinds = map[string]rule{
	"background": {
		"A prepared summary takes effect only while its base marker counts and the second " +
			"threshold is reached, in the transaction that checks both.",
		[]string{"internal/store/prepared.go", "internal/service/background.go"},
	},
	"chained": {
		"The prior summary is one message that the next summary replaces; what stands around it is " +
			"made anew and never taken from an answer; without a new message there is nothing to do.",
		[]string{"pipeline/partition.go", "pipeline/answer.go"},
	},
	"constraints": {
		"Limits that the user stated are looked for in every summary and appended word for word; " +
			"pins are live state and stand in every context.",
		[]string{"pipeline/constraints.go", "pipeline/verify.go", "pipeline/reassemble.go"},
	},
	"crash": {
		"A marker is written by one transaction, whole or not at all; a stage's result and a " +
			"vendor's answer are kept under a key before the activity returns.",
		[]string{"internal/store/apply.go", "activities/once.go", "internal/store/call.go"},
	},
	"durability": {"Workflows carry ids, numbers and hashes, never text; a stopped worker's activity is tried " +
		"again by the next one.", []string{"activities/contract.go", "activities/errors.go"}},
	"empty": {
		"What has nothing to summarise is found before a model is asked, with one of three " +
			"reasons; empty texts are left out where an API takes none.",
		[]string{"pipeline/partition.go", "pipeline/reassemble.go"},
	},
	"errors": {
		"Every failure has one kind; a table says what follows each, and breakers in the store " +
			"bound the attempts over restarts.",
		[]string{
			"internal/llm/classify.go", "workflows/ladder.go", "activities/errors.go",
			"internal/store/breaker.go",
		},
	},
	"estimate": {
		"Text is counted by its script, and the figure is scaled by the vendor's last one.",
		[]string{"pipeline/tokens.go", "pipeline/trigger.go"},
	},
	"fidelity": {"The tail begins with the user's last message and is never edited; everything before it " +
		"goes to the summarizer, the user's words first.", []string{"pipeline/partition.go", "pipeline/slim.go"}},
	"idempotency": {"A compaction by hand of what has not changed ends as already compacted, before a model is " +
		"asked.", []string{"pipeline/partition.go"}},
	"injection": {"Lines of the instructions, and of what stands around a summary, are taken out of every " +
		"answer; instructions are never stored as messages.", []string{"pipeline/answer.go", "pipeline/prompt.go"}},
	"language": {
		"All prompts share one set of rules, and the language of the conversation is one of them.",
		[]string{"pipeline/prompts/rules.md"},
	},
	"loop": {
		"An attempt that cannot help is not made again before enough has come: the last run's end " +
			"decides, in the transaction of the append.",
		[]string{"internal/service/trigger.go", "activities/reassemble.go"},
	},
	"media": {
		"Images count by their size in pixels, never by their letters.",
		[]string{"pipeline/tokens.go", "pipeline/binary.go"},
	},
	"model-switch": {"Limits and summarizers are those in force when a run starts; a change of the model is " +
		"looked at as an append is.", []string{"internal/service/conversations.go", "internal/conversation/window.go"}},
	"native": {
		"A compaction of the vendor's own is asked for once, where it is large enough, and kept " +
			"only with content; every failure of it goes on to a prompt.",
		[]string{"internal/llm/native.go", "activities/native.go", "workflows/ladder.go"},
	},
	"noop": {
		"A context is the stored messages, byte for byte, with edits only where a rule asks for one.",
		[]string{"pipeline/reassemble.go", "pipeline/edit.go"},
	},
	"one-huge": {"Above the limit the last steps of the ladder cut the middle out of oversized results in " +
		"the tail; the user's last message never.", []string{"pipeline/valve.go", "workflows/ladder.go"}},
	"open-call": {"A call that was never answered gets a result that says so when the context is written; " +
		"the split takes no notice of it.", []string{"pipeline/pairing.go", "pipeline/reassemble.go"}},
	"overflow": {
		"The input is cut to the summarizer's window, with room for its answer, before the first " +
			"request; an overflow that is reported all the same halves it.",
		[]string{"pipeline/summarizer.go", "activities/slim.go", "internal/llm/classify.go"},
	},
	"pairing": {
		"A call and its results are one unit: no split falls inside one, and half of one is " +
			"answered, moved or told as text when the context is written.",
		[]string{"pipeline/pairing.go", "pipeline/partition.go", "pipeline/reassemble.go"},
	},
	"persist": {"A client's own id is stored once; what a client believes of the conversation is compared " +
		"in the transaction of the append.", []string{"internal/store/append.go"}},
	"policy": {
		"Whether anything starts by itself is decided in one place, for every signal.",
		[]string{"pipeline/trigger.go"},
	},
	"prompt": {"An external summarizer has the compactor's own system prompt; text in the shape of a tool " +
		"call is no summary.", []string{"pipeline/prompt.go", "pipeline/answer.go"}},
	"race": {
		"One workflow a conversation; a marker is applied by a transaction that checks the base " +
			"marker, the covered messages and the lease of a reply.",
		[]string{"workflows/start.go", "internal/store/apply.go", "internal/store/reply.go"},
	},
	"refusal": {"Why the model stopped is judged before its text; a refusal goes on to the next summarizer " +
		"and is never asked again.", []string{"pipeline/answer.go", "workflows/ladder.go"}},
	"secrets": {"With redaction on, credentials are taken out of what goes to an external summarizer and " +
		"out of its summary; the transcript keeps them.", []string{"pipeline/redact.go"}},
	"shape": {"A context is put together once for all APIs, as a request that the target takes; the " +
		"summary is a message of role user.", []string{"pipeline/reassemble.go", "pipeline/transcript/convert.go"}},
	"slim": {
		"Every kind of content is rendered into one list and gets its fair share of one budget; " +
			"dropped tool messages leave as pairs.",
		[]string{"pipeline/slim.go", "pipeline/fairshare.go", "pipeline/render.go"},
	},
	"state": {
		"Live state comes from the store at each compaction and turn, never from the history; what " +
			"no person said is told apart when it is appended.",
		[]string{"pipeline/reassemble.go", "internal/store/enrichment.go", "pipeline/message.go"},
	},
	"subagent": {
		"A conversation has its own messages, figures and markers; nothing is shared between two.",
		[]string{"internal/store/conversation.go"},
	},
	"summary-output": {"One function takes the summary out of an answer or says which kind of failure it is; " +
		"nothing else is ever committed.", []string{"pipeline/answer.go", "workflows/ladder.go"}},
	"tail": {"The tail has a budget in tokens; above it the split moves on to the next step at which no " +
		"call is open.", []string{"pipeline/partition.go"}},
	"tenant": {
		"Every query names its tenant; a test walks over all of the store's methods with a foreign one.",
		[]string{"internal/store/doc.go", "internal/store/isolation_test.go"},
	},
	"thinking": {
		"A message is kept as the bytes that came; a codec changes only the bytes that an edit names.",
		[]string{"pipeline/edit.go", "pipeline/transcript/surgery.go"},
	},
	"trigger": {
		"The limit comes from one function, in one order, and reaching it is enough.",
		[]string{"pipeline/trigger.go"},
	},
	"undo": {"Messages are never deleted: an undo makes the marker before count again, and the context " +
		"is read from there.", []string{"internal/store/apply.go", "internal/store/live.go"}},
	"usage": {
		"A figure is one request's, tied to the message that it covers and to the context that it " +
			"was made of; what cannot be is not believed, and said so.",
		[]string{"pipeline/trigger.go", "internal/store/append.go", "internal/service/usage.go"},
	},
}

// TestTable keeps docs/faults.md what the tables here say.
func TestTable(t *testing.T) {
	t.Parallel()
	want := table(collection(t))
	if *update {
		if err := os.WriteFile(tablePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(tablePath)
	if err != nil || string(got) != want {
		t.Errorf("docs/faults.md is not what the cases say (%v): go test ./internal/faults -run TestTable -update", err)
	}
	for kind, r := range kinds {
		for _, file := range r.where {
			if _, err := os.Stat("../../" + file); err != nil {
				t.Errorf("%s: %v", kind, err)
			}
		}
	}
}

// table writes the document.
func table(all []fault) string {
	var b strings.Builder
	b.WriteString(`<!-- Written by: go test ./internal/faults -run TestTable -update -->

# Faults of other systems, and why they cannot happen here

A collection of faults that were reported of other systems is played against this one: each as calls of the HTTP API on
a real server, with a real worker, Temporal and PostgreSQL, and a scripted vendor in the place of the models. The
collection itself is not part of the project; ` + "`internal/faults`" + ` reads it from the shared folder and says in Go what each case
expects. After every step of every case it is checked as well that

1. the vendor would take the context: every result follows its call, and every call has its result;
2. the user's last message is in it byte for byte, and no message more often than it was sent;
3. the system prompt is first, and as it was given;
4. the stored transcript is what was sent;
5. a run that applied nothing left the context as it was;

and at the end that every request to the vendor was valid for its API and is booked on its run.

## Kinds

What makes a whole kind impossible, and where that rule lives.

| kind | rule | where |
| --- | --- | --- |
`)
	var names []string
	for kind := range kinds {
		names = append(names, kind)
	}
	slices.Sort(names)
	for _, kind := range names {
		fmt.Fprintf(&b, "| %s | %s | `%s` |\n", kind, kinds[kind].says, strings.Join(kinds[kind].where, "`, `"))
	}
	b.WriteString("\n## Cases\n\n| case | kind | played | what is checked |\n| --- | --- | --- | --- |\n")
	skipped := ""
	for _, f := range all {
		h := cases[f.ID]
		if h.skip != "" {
			skipped += fmt.Sprintf("| %s | %s | %s | %s |\n", f.ID, f.Kind, h.says, h.skip)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", f.ID, f.Kind, played(f), h.says)
	}
	b.WriteString(
		"\n## Not played here\n\n| case | kind | what is checked | why not, and where |\n| --- | --- | --- | --- |\n" +
			skipped)
	b.WriteString("\n## Where the design decides otherwise\n\n| case | how |\n| --- | --- |\n")
	for _, f := range all {
		if note := cases[f.ID].note; note != "" {
			fmt.Fprintf(&b, "| %s | %s |\n", f.ID, note)
		}
	}
	return b.String()
}

// played says in which ways a case is.
func played(f fault) string {
	var forms, digests []string
	variants := 1
	var p *play
	for _, p = range playsOf(f) {
		if s := string(p.format); !slices.Contains(forms, s) {
			forms = append(forms, s)
		}
		if s := policyName(p.policy); !slices.Contains(digests, s) {
			digests = append(digests, s)
		}
		variants = max(variants, p.variant+1)
	}
	out := []string{strings.Join(forms, " and ")}
	if variants > 1 {
		out = append(out, fmt.Sprintf("%d variants", variants))
	}
	if len(digests) > 1 {
		out = append(out, "digest "+strings.Join(digests, " and "))
	}
	out = append(out, "by "+p.who())
	if p.how.restarts {
		out = append(out, "its worker is stopped and started")
	}
	return strings.Join(out, "; ")
}

func policyName(p pipeline.DigestPolicy) string {
	if p == "" {
		return string(pipeline.DigestWhenNeeded)
	}
	return string(p)
}

// who says which summarizers a play lists.
func (p *play) who() string {
	c := &play{fault: p.fault, how: p.how, vendor: &vendor{}}
	var names []string
	for _, s := range c.summarizers(p.fault.Config.SummarizerWindow, firstModel) {
		switch s := s.(type) {
		case string:
			names = append(names, strings.TrimPrefix(s, "/"))
		case map[string]any:
			names = append(names, strings.TrimPrefix(fmt.Sprint(s["model"]), "/"))
		}
	}
	for i, name := range names {
		names[i] = map[string]string{"self": "the agent's model", firstModel: "another", secondModel: "another"}[name]
	}
	return strings.Join(names, ", then ")
}
