package eval

import (
	"context"
	"strings"

	"precis/pipeline"
)

// Options are the settings for growing and compacting conversations.
type Options struct {
	// Window is the model's, in tokens. A compaction comes at pipeline.SelfSummaryContextWindowFraction of it.
	Window int
	// SummaryTokens caps a summary.
	SummaryTokens int
	// Generations is how many compactions a fact is followed through, from 1.
	Generations int
}

// The defaults: a window in which a session of an afternoon is compacted several times, and a summary of an eighth of
// the window. Both are smaller than those of a real model, by the same factor.
const (
	DefaultWindow        = 32_000
	DefaultSummaryTokens = 4_000
	DefaultGenerations   = 5
)

// Tally counts facts.
type Tally struct {
	// Said is the number of facts, Kept the number of them that are still in the context.
	Said int `json:"said"`
	Kept int `json:"kept"`
}

func (t *Tally) add(o Tally) { t.Said, t.Kept = t.Said+o.Said, t.Kept+o.Kept }

// Survival has the tally of the facts of one kind after each number of compactions, from 1.
type Survival []Tally

// Share returns the share that is left after generation g, from 1; ok is false if there were no facts.
func (s Survival) Share(g int) (share float64, ok bool) {
	if g < 1 || g > len(s) || s[g-1].Said == 0 {
		return 0, false
	}
	return float64(s[g-1].Kept) / float64(s[g-1].Said), true
}

// Outcome is one conversation compacted by one method.
type Outcome struct {
	// Compactions is the number of all compactions.
	Compactions int `json:"compactions"`
	// Before and After are the sums of the context's tokens before and after them.
	Before int64 `json:"tokens_before"`
	After  int64 `json:"tokens_after"`
	// Kinds are the survivals of the facts that were followed through every generation.
	Kinds map[pipeline.MentionKind]Survival `json:"kinds"`
}

// cohort are the facts that one compaction covered first.
type cohort struct {
	facts []pipeline.Mention
	alive []bool
	// kept counts by kind the facts that survived each compaction since.
	kept []map[pipeline.MentionKind]int
	said map[pipeline.MentionKind]int
}

// Tracker follows the facts of one conversation through its compactions, by whatever method they are made.
//
// A fact counts from the compaction that first covers its message, as long as it has been in the context ever since: a
// fact that was lost and is said again later has not survived. Only facts that could be followed through all
// generations are counted. For tasks the share is of those that are open at the n-th compaction: how many are in the
// context after it.
type Tracker struct {
	generations int
	history     []pipeline.Message // all of it so far
	covered     int64
	counted     map[pipeline.MentionKind]map[string]bool // facts that are in a cohort
	cohorts     []*cohort
	tasks       Survival
	out         Outcome
}

// NewTracker returns a tracker for one conversation and so many compactions.
func NewTracker(generations int) *Tracker {
	return &Tracker{
		generations: generations, tasks: make(Survival, generations),
		counted: map[pipeline.MentionKind]map[string]bool{},
	}
}

// Add adds the next message, which must have its Seq.
func (t *Tracker) Add(m pipeline.Message) { t.history = append(t.history, m) }

// run is one conversation that is compacted here, without a stack.
type run struct {
	*Tracker
	o        Options
	method   Method
	settings pipeline.Settings
	live     []pipeline.Message // the messages that no summary covers
	prior    *pipeline.Message
	tokens   int // estimate of the context
	seen     int64
}

// Survive grows a conversation message by message, compacts it by the method whenever it reaches the limit and no call
// is open, and measures after each compaction which earlier facts are still in the context: see Tracker.
// Messages must have their Seq and Tokens. The error is that of ctx, if it is done first.
func Survive(ctx context.Context, messages []pipeline.Message, m Method, o Options) (Outcome, error) {
	s := pipeline.DefaultSettings()
	s.SummaryMaxTokens = o.SummaryTokens
	r := &run{Tracker: NewTracker(o.Generations), o: o, method: m, settings: s}
	rests := Rests(messages)
	for i, msg := range messages {
		r.Add(msg)
		r.live = append(r.live, msg)
		if r.tokens += msg.Tokens; r.tokens >= o.Limit() && rests[i] {
			if err := r.compact(ctx); err != nil {
				return Outcome{}, err
			}
		}
	}
	return r.Outcome(), nil
}

// Limit returns the size at which a compaction starts, in tokens.
func (o Options) Limit() int {
	return int(float64(o.Window) * pipeline.SelfSummaryContextWindowFraction)
}

// Rests reports for each message whether a compaction may come after it: no call is open, and no step continues.
func Rests(messages []pipeline.Message) []bool {
	rests := make([]bool, len(messages))
	open := map[string]int{}
	calls := 0
	for i, msg := range messages {
		for _, id := range msg.Calls() {
			open[id]++
			calls++
		}
		for _, id := range msg.Results() {
			if open[id] > 0 {
				open[id]--
				calls--
			}
		}
		if i == len(messages)-1 {
			rests[i] = true
			break
		}
		next := messages[i+1]
		step := msg.Role == pipeline.RoleAssistant && next.Role == pipeline.RoleAssistant
		rests[i] = !step && (calls == 0 || next.Genuine())
	}
	return rests
}

// compact compacts once and measures the result.
func (r *run) compact(ctx context.Context) error {
	live := r.live
	if r.prior != nil {
		live = append([]pipeline.Message{*r.prior}, live...)
	}
	in := pipeline.PartitionInput{Messages: live, Settings: r.settings, Window: r.o.Window, SeenSeq: r.seen}
	before := r.tokens
	part, err := pipeline.PartitionMessages(ctx, in)
	if err == nil && part.Nothing != "" {
		in.Full = true
		part, err = pipeline.PartitionMessages(ctx, in)
	}
	if err != nil || part.Nothing != "" {
		return err
	}
	pick := func(lists ...[]int) []pipeline.Message {
		var out []pipeline.Message
		for _, list := range lists {
			for _, i := range list {
				out = append(out, live[i])
			}
		}
		return out
	}
	source, tail := pick(part.ToSummarize), pick(part.Carried, part.Tail)
	summary, err := r.summary(ctx, source, tail)
	if err != nil {
		return err
	}
	text := pipeline.SummaryText(pipeline.SummaryTextInput{
		Summary: summary, Digest: r.method.Summarizer == Digest, UnderWay: pipeline.UnderWay(live),
		TailKept: len(tail) > 0,
	})
	r.prior = &pipeline.Message{
		Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
		Parts: []pipeline.Part{{Kind: pipeline.PartText, Text: text}}, Tokens: pipeline.EstimateText(text),
	}
	r.live = pick(part.System, part.UserInfo, part.Carried, part.Tail)
	r.tokens = r.prior.Tokens
	for _, m := range r.live {
		r.tokens += m.Tokens
	}
	r.seen = r.history[len(r.history)-1].Seq
	return r.Compacted(ctx, part.CoversTo, contextText(text, r.live), before, r.tokens)
}

// contextText returns all text of a context that the model can read.
func contextText(summary string, live []pipeline.Message) string {
	var b strings.Builder
	b.WriteString(summary + "\n")
	for _, m := range live {
		b.WriteString(pipeline.RenderMessage(m) + "\n")
	}
	return b.String()
}

// Compacted looks for all facts in a new context. coversTo is the last message that its summary covers, before and
// after are the context's tokens. The error is that of ctx, if it is done first.
func (t *Tracker) Compacted(ctx context.Context, coversTo int64, text string, before, after int) error {
	from := t.covered
	t.covered = max(t.covered, coversTo)
	t.out.Compactions++
	t.out.Before, t.out.After = t.out.Before+int64(before), t.out.After+int64(after)
	var covered []pipeline.Message
	for _, m := range t.history {
		if m.Seq > from && m.Seq <= t.covered {
			covered = append(covered, m)
		}
	}
	c := &cohort{said: map[pipeline.MentionKind]int{}}
	mentions, err := pipeline.MentionsOf(ctx, covered)
	if err != nil {
		return err
	}
	for _, f := range mentions {
		if t.counted[f.Kind] == nil {
			t.counted[f.Kind] = map[string]bool{}
		}
		if !t.counted[f.Kind][f.Text] {
			t.counted[f.Kind][f.Text] = true
			c.facts = append(c.facts, f)
			c.alive = append(c.alive, true)
			c.said[f.Kind]++
		}
	}
	t.cohorts = append(t.cohorts, c)
	for _, c := range t.cohorts {
		if len(c.kept) == t.generations {
			continue
		}
		kept := map[pipeline.MentionKind]int{}
		mentioned, err := pipeline.MentionedIn(ctx, c.facts, text)
		if err != nil {
			return err
		}
		for i, there := range mentioned {
			if c.alive[i] = c.alive[i] && there; c.alive[i] {
				kept[c.facts[i].Kind]++
			}
		}
		c.kept = append(c.kept, kept)
	}
	open, _, err := pipeline.OpenTasks(ctx, t.history)
	if err != nil {
		return err
	}
	if len(open) > 0 && t.out.Compactions <= t.generations {
		tasks := make([]pipeline.Mention, len(open))
		for i, text := range open {
			tasks[i] = pipeline.Mention{Kind: pipeline.MentionTask, Text: text}
		}
		tally := &t.tasks[t.out.Compactions-1]
		mentioned, err := pipeline.MentionedIn(ctx, tasks, text)
		if err != nil {
			return err
		}
		for _, there := range mentioned {
			tally.Said++
			if there {
				tally.Kept++
			}
		}
	}
	return nil
}

// Outcome returns the sums over the cohorts that were followed through all generations.
func (t *Tracker) Outcome() Outcome {
	out := t.out
	out.Kinds = map[pipeline.MentionKind]Survival{pipeline.MentionTask: t.tasks}
	for _, kind := range pipeline.MentionKinds {
		if kind == pipeline.MentionTask {
			continue
		}
		s := make(Survival, t.generations)
		for _, c := range t.cohorts {
			if len(c.kept) < t.generations {
				continue
			}
			for g := range s {
				s[g].add(Tally{Said: c.said[kind], Kept: c.kept[g][kind]})
			}
		}
		out.Kinds[kind] = s
	}
	return out
}

// summary writes the summary by the run's method.
func (r *run) summary(ctx context.Context, source, tail []pipeline.Message) (string, error) {
	chars, tokens := 0, 0
	for _, m := range source {
		text := pipeline.RenderMessage(m)
		chars += pipeline.Chars(text)
		tokens += pipeline.EstimateText(text)
	}
	perToken := 1.0
	if tokens > 0 {
		perToken = float64(chars) / float64(tokens)
	}
	room := int(float64(min(r.settings.SummaryMaxTokens, r.o.Window/4)) * perToken)
	if r.method.Summarizer == Digest {
		if r.method.Policy == Ours {
			return pipeline.Digest(ctx, pipeline.DigestInput{Messages: source, BudgetChars: room})
		}
		return r.method.Policy.cut(ctx, source, room)
	}
	// The summarizer has half of the window for its input, so that something has to be cut.
	shown, err := r.method.Policy.shown(ctx, source, int(float64(r.o.Window/2)*perToken), r.settings)
	if err != nil {
		return "", err
	}
	// The product checks any model's answer in the same way.
	users, err := pipeline.SummarizedUsers(ctx, source)
	if err != nil {
		return "", err
	}
	summary, err := pipeline.UserMessagesSection(ctx, write(shown, room), users, r.settings.SummaryMaxTokens*3/4)
	if err != nil {
		return "", err
	}
	summary, _, err = pipeline.VerifySummary(ctx, summary, source, tail)
	return summary, err
}
