package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"precis/internal/config"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// ImportOptions are the options of ImportFile.
type ImportOptions struct {
	Tenant string
	// ID is the id of the conversation. If it is "", one is generated. Further conversations of the file are ID-2,
	// ID-3…
	ID string
	// Vendor and Model of the agent, if set, take precedence over those in the file.
	Vendor, Model string
	// Window is the context window in tokens, 0 for the one in Models.
	Window int
	// Models has the windows of models, and the vendors of models that the file names without one.
	Models llm.Models
	// Settings are the settings of the conversation, a JSON object.
	Settings json.RawMessage
	// Ephemeral marks the conversations: their content is deleted when their run has ended.
	Ephemeral bool
	// TrustCompactions stores the compactions recorded in the file as markers. The messages before them are then
	// covered, as they were for the agent.
	TrustCompactions bool
	// Pick, if greater than 0, imports only the Pick-th conversation of the file.
	Pick int
	// Progress, if set, is called with the number of messages stored so far.
	Progress func(messages int)
}

// Imported is an imported conversation.
type Imported struct {
	Conversation conversations.Conversation
	Meta         transcript.Meta
	Messages     int
	// Compactions counts the recorded compactions that were stored as markers.
	Compactions int
}

// Import is the result of importing a file.
type Import struct {
	Format        transcript.Format
	Conversations []Imported
	// Skipped counts the conversations that Pick left out.
	Skipped int
	Notes   []transcript.Item
}

// ImportFile reads a transcript message by message and stores its conversations. Memory is bounded by the size of a
// batch, not of the file. After an error, the messages before it are stored, and the result has their conversations.
func ImportFile(ctx context.Context, s *store.Store, d *transcript.Decoder, o ImportOptions) (Import, error) {
	im := &importer{store: s, decoder: d, options: o}
	im.result.Format = d.Format()
	for {
		it, err := d.Next()
		switch {
		case errors.Is(err, io.EOF):
			return im.result, im.found()
		case err != nil:
			return im.result, err
		case it.Note != nil:
			im.result.Notes = append(im.result.Notes, it)
		case it.Start != nil:
			if err := im.conversation(ctx, *it.Start); err != nil {
				return im.result, err
			}
		}
	}
}

type importer struct {
	store   *store.Store
	decoder *transcript.Decoder
	options ImportOptions
	result  Import
	seen    int
}

func (im *importer) found() error {
	switch {
	case im.seen == 0:
		return pipeline.Errorf(pipeline.BadRequest, "there is no conversation in it")
	case len(im.result.Conversations) == 0:
		return pipeline.Errorf(pipeline.BadRequest, "there are %d conversations in it, and none is number %d", im.seen,
			im.options.Pick)
	}
	return nil
}

// conversation reads up to the End of the conversation that has just begun.
func (im *importer) conversation(ctx context.Context, start transcript.Meta) error {
	im.seen++
	if im.options.Pick > 0 && im.options.Pick != im.seen {
		im.result.Skipped++
		return im.skip()
	}
	o := im.options
	id := o.ID
	if id != "" && len(im.result.Conversations) > 0 {
		id = fmt.Sprintf("%s-%d", id, len(im.result.Conversations)+1)
	}
	c, created, err := im.store.Conversations.Create(ctx, o.Tenant, conversations.NewConversation{
		ID: id, Format: string(start.Format), Settings: o.Settings, Ephemeral: o.Ephemeral,
	})
	if err != nil {
		return err
	}
	if !created && c.HeadSeq > 0 {
		return pipeline.Errorf(pipeline.Conflict, "conversation %q exists already: choose another id", id)
	}

	// The conversation is in the result from here on, also after an error.
	at := len(im.result.Conversations)
	im.result.Conversations = append(im.result.Conversations, Imported{Conversation: c})

	in := &reading{importer: im, count: c.HeadSeq}
	if _, err := im.store.Changes.AppendStream(ctx, c.Ref, in.messages); err != nil {
		return err
	}
	meta := in.end
	vendor, model := o.Vendor, o.Model
	if vendor == "" {
		vendor = meta.Vendor
	}
	if model == "" {
		model = meta.Model
	}
	vendor, model = vendorOf(vendor, model, o.Models)
	window := o.Window
	if window == 0 && o.Model == "" {
		window = meta.Window // the agent's own number for its model
	}
	maxOutput := meta.MaxTokens
	if known, ok := o.Models.Lookup(vendor, model); ok && window == 0 {
		window = known.Window
	}
	if c, err = im.store.Changes.Update(ctx, c.Ref, conversations.Patch{
		Vendor: &vendor, Model: &model, Window: &window, MaxOutput: &maxOutput,
		System: &meta.System, Tools: &meta.Tools, Envelope: &meta.Envelope,
	}); err != nil {
		return err
	}
	markers, err := in.markers(ctx, c.Ref)
	if err != nil {
		return err
	}
	if c, err = in.recordUsage(ctx, c.Ref); err != nil {
		return err
	}
	im.result.Conversations[at] = Imported{
		Conversation: c, Meta: meta, Messages: int(c.HeadSeq), Compactions: markers,
	}
	return nil
}

// vendorOf returns the vendor and model for a model name whose vendor the file does not have. A log in OpenAI's
// format may be of another vendor's model, and a gateway writes "vendor/model".
func vendorOf(vendor, model string, models llm.Models) (string, string) {
	if before, after, ok := strings.Cut(model, "/"); ok && (vendor == "" || vendor == before) {
		return before, after
	}
	if vendor == "" {
		if known, ok := models.Lookup("", model); ok {
			vendor = known.Vendor
		}
	}
	return vendor, model
}

// skip skips a conversation.
func (im *importer) skip() error {
	for {
		it, err := im.decoder.Next()
		if err != nil {
			return unexpectedEnd(err)
		}
		if it.End != nil {
			return nil
		}
	}
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return pipeline.Errorf(pipeline.Internal, "the decoder ended within a conversation")
	}
	return err
}

// reading is the state of importing one conversation.
type reading struct {
	*importer
	count       int64
	end         transcript.Meta
	compactions []transcript.RecordedCompaction
	usage       *transcript.RecordedUsage
	// tokens is the local estimate of the messages so far, sized that of the messages which usage covers.
	tokens, sized int
	// summarized is true if the file begins with a summary of messages that are not in it.
	summarized bool
}

// messages yields the messages up to the conversation's End, and keeps compactions and usage for later.
func (r *reading) messages(yield func(conversations.NewMessage, error) bool) {
	for {
		it, err := r.decoder.Next()
		if err != nil {
			yield(conversations.NewMessage{}, unexpectedEnd(err))
			return
		}
		switch {
		case it.End != nil:
			r.end = *it.End
			return
		case it.Note != nil:
			r.result.Notes = append(r.result.Notes, it)
		case it.Compaction != nil && (r.count <= int64(it.Compaction.KeptFirst+it.Compaction.Kept) ||
			!r.options.TrustCompactions):
			// The covered messages are not in the file, or compactions are not trusted: store the summary as a message.
			r.summarized = r.summarized || r.count == 0
			if !it.Compaction.InMessages && !r.give(it.Compaction.Summary, yield) {
				return
			}
		case it.Compaction != nil:
			r.compactions = append(r.compactions,
				transcript.RecordedCompaction{Compaction: *it.Compaction, Before: int(r.count)})
		case it.Usage != nil:
			r.usage = &transcript.RecordedUsage{Usage: *it.Usage, Covers: int(r.count)}
			r.sized = r.tokens
		case it.Message != nil:
			if !r.give(*it.Message, yield) {
				return
			}
		}
	}
}

// give yields one message in the form in which it is stored.
func (r *reading) give(m pipeline.Message, yield func(conversations.NewMessage, error) bool) bool {
	r.count++
	if r.options.Progress != nil {
		r.options.Progress(int(r.count))
	}
	stored := Stored(m)
	r.tokens += stored.Tokens
	r.summarized = r.summarized || r.count == 1 && m.Kind == pipeline.KindSummary
	// Ids in files may repeat, and a message with a known client id is not added. Every message of a file is stored.
	stored.ClientID = ""
	return yield(stored, nil)
}

// markers stores the recorded compactions as markers, oldest first, so that undo works on them in order.
func (r *reading) markers(ctx context.Context, ref store.ConversationRef) (int, error) {
	n := 0
	for _, c := range r.compactions {
		text, digest, err := r.summary(ctx, ref, c)
		if err != nil {
			return n, err
		}
		if _, err = r.store.Markers.Report(ctx, ref, markers.Reported{
			Origin: markers.OriginImported, CoversTo: int64(c.Before), Summary: []byte(text), Digest: digest,
			SummaryTokens: pipeline.EstimateText(text), TokensBefore: c.TokensBefore, TokensAfter: c.TokensAfter,
			Carried: keptMessages(c),
		}); err != nil {
			return n, fmt.Errorf("the compaction recorded after message %d: %w", c.Before, err)
		}
		n++
	}
	return n, nil
}

// summary returns the text that replaces the messages that a recorded compaction covers. If the recorded summary does
// not say that it is one, it is framed like those of precis. If only its vendor can read it, a digest of the messages
// is used, so that other models and the next compaction lose nothing.
func (r *reading) summary(ctx context.Context, ref store.ConversationRef,
	c transcript.RecordedCompaction,
) (text string, digest bool, err error) {
	text = pipeline.RenderMessage(c.Summary)
	if transcript.SaysItIsSummary(c.Summary) {
		return text, false, nil
	}
	in := Installation{Settings: config.DefaultSettings(), Models: r.options.Models}
	view, err := Load(ctx, r.store, ref, in, int64(c.Before))
	if err != nil {
		return "", false, err
	}
	covered := slices.DeleteFunc(view.Live(), func(m pipeline.Message) bool { return m.Seq > int64(c.Before-c.Kept) })
	if digest = strings.TrimSpace(text) == ""; digest {
		tokens := view.Settings.SummaryMaxTokens
		if w := view.Conversation.Window; w > 0 {
			tokens = min(tokens, w/4)
		}
		text, err = pipeline.Digest(ctx,
			pipeline.DigestInput{Messages: covered, BudgetChars: tokens * digestCharsPerToken})
		if err != nil {
			return "", true, err
		}
	}
	return pipeline.SummaryText(pipeline.SummaryTextInput{
		Summary: text, Digest: digest, UnderWay: pipeline.UnderWay(covered), TailKept: true,
	}), digest, nil
}

// digestCharsPerToken is the smallest number of characters per token in a digest of mixed scripts.
const digestCharsPerToken = 2

// keptMessages returns the numbers of the messages that a recorded compaction left in the context: at the beginning of
// the conversation, directly before the summary, and those that it lists.
func keptMessages(c transcript.RecordedCompaction) []int64 {
	var out []int64
	for seq := 1; seq <= c.Before; seq++ {
		if seq <= c.KeptFirst || seq > c.Before-c.Kept || slices.Contains(c.Carried, seq) {
			out = append(out, int64(seq))
		}
	}
	return out
}

// headTokens are for a system prompt and tools that a file does not have, explainedFactor for a local estimate that is
// too small.
const (
	headTokens      = 20_000
	explainedFactor = 2
)

// believed reports whether the last usage can be that of the messages in the file. The figures beside messages that a
// compaction kept are those of requests before it, although the summary is now in front of them.
func (r *reading) believed() bool {
	return !r.summarized || r.usage.Used <= explainedFactor*r.sized+headTokens
}

// recordUsage stores the last usage in the file, unless a compaction follows it or the messages cannot explain it.
func (r *reading) recordUsage(ctx context.Context, ref store.ConversationRef) (conversations.Conversation, error) {
	if r.usage == nil || r.usage.Used <= 0 || !r.believed() || len(r.compactions) > 0 &&
		r.compactions[len(r.compactions)-1].Before >= r.usage.Covers {
		return r.store.Conversations.Get(ctx, ref)
	}
	return r.store.Changes.RecordUsage(ctx, ref,
		changes.UsageReport{Tokens: r.usage.Used, CoversSeq: int64(r.usage.Covers)})
}
