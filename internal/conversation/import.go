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

// ImportOptions say what becomes of a file's conversations.
type ImportOptions struct {
	Tenant string
	// ID for the conversation, "": one is made. With several conversations in a file: ID-2, ID-3… follow.
	ID string
	// Vendor and Model of the agent where the file does not say, or to replace what it says.
	Vendor, Model string
	// Window in tokens, 0: what Models knows of the model.
	Window int
	// Models knows the window of a model, and the vendor of one whose vendor the file does not name.
	Models llm.Models
	// Settings of the conversation, a JSON object.
	Settings json.RawMessage
	// Ephemeral marks conversations whose content goes when their run has ended.
	Ephemeral bool
	// TrustCompactions makes compactions that the file records into markers: the messages before them are
	// then covered, as they were for the agent.
	TrustCompactions bool
	// Pick, when over 0, imports only the Pick-th conversation of the file.
	Pick int
	// Progress is told of the messages that were written so far.
	Progress func(messages int)
}

// Imported is one conversation that came out of a file.
type Imported struct {
	Conversation conversations.Conversation
	Meta         transcript.Meta
	Messages     int
	// Compactions counts the recorded ones that became markers.
	Compactions int
}

// Import is everything that came out of a file.
type Import struct {
	Format        transcript.Format
	Conversations []Imported
	// Skipped counts the conversations that Pick left out.
	Skipped int
	Notes   []transcript.Item
}

// ImportFile reads a transcript message by message and stores its conversations. Memory is bounded by a batch,
// not by the file. After an error, what was stored before it stays, and is in the result.
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

	// In the result from here on, however far it comes.
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
		window = meta.Window // the agent's own figure for the model that it had
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

// vendorOf tells the vendor of a model by its name where the file does not say: an OpenAI-shaped log may well
// be of another vendor's model, and a gateway writes "vendor/model".
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

// skip reads over a conversation.
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

// reading is the state of one conversation on its way in.
type reading struct {
	*importer
	count       int64
	end         transcript.Meta
	compactions []transcript.RecordedCompaction
	usage       *transcript.RecordedUsage
}

// messages gives the messages up to the conversation's End, and notes on the way what belongs to them.
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
			// What it covered is not there, or it is not to be trusted: its summary is history like any other.
			if !it.Compaction.InMessages && !r.give(it.Compaction.Summary, yield) {
				return
			}
		case it.Compaction != nil:
			r.compactions = append(r.compactions,
				transcript.RecordedCompaction{Compaction: *it.Compaction, Before: int(r.count)})
		case it.Usage != nil:
			r.usage = &transcript.RecordedUsage{Usage: *it.Usage, Covers: int(r.count)}
		case it.Message != nil:
			if !r.give(*it.Message, yield) {
				return
			}
		}
	}
}

// give hands one message on to the store.
func (r *reading) give(m pipeline.Message, yield func(conversations.NewMessage, error) bool) bool {
	r.count++
	if r.options.Progress != nil {
		r.options.Progress(int(r.count))
	}
	stored := Stored(m)
	// Ids in files repeat, and a repeated client id would add nothing: every message of a file is stored.
	stored.ClientID = ""
	return yield(stored, nil)
}

// markers makes the recorded compactions into markers, oldest first, so that undo goes back through them.
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

// summary is what the model sees in place of what a recorded compaction covered. One that does not say what it is gets
// the words of ours around it. In the place of one that only its vendor can read stands a digest of the messages, so
// that nothing is lost to another model, nor to the next compaction.
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
		text = pipeline.Digest(pipeline.DigestInput{Messages: covered, BudgetChars: tokens * digestCharsPerToken})
	}
	return pipeline.SummaryText(pipeline.SummaryTextInput{
		Summary: text, Digest: digest, UnderWay: pipeline.UnderWay(covered), TailKept: true,
	}), digest, nil
}

// digestCharsPerToken is how many chars of a digest make a token at least, in text that is not of one script alone.
const digestCharsPerToken = 2

// keptMessages are the sequence numbers of the messages that a recorded compaction left visible: at the head of
// the conversation, right before the summary, and those that it names.
func keptMessages(c transcript.RecordedCompaction) []int64 {
	var out []int64
	for seq := 1; seq <= c.Before; seq++ {
		if seq <= c.KeptFirst || seq > c.Before-c.Kept || slices.Contains(c.Carried, seq) {
			out = append(out, int64(seq))
		}
	}
	return out
}

// recordUsage takes over the file's last server figure, unless a compaction came after it.
func (r *reading) recordUsage(ctx context.Context, ref store.ConversationRef) (conversations.Conversation, error) {
	if r.usage == nil || r.usage.Used <= 0 || len(r.compactions) > 0 &&
		r.compactions[len(r.compactions)-1].Before >= r.usage.Covers {
		return r.store.Conversations.Get(ctx, ref)
	}
	return r.store.Changes.RecordUsage(ctx, ref,
		changes.UsageReport{Tokens: r.usage.Used, CoversSeq: int64(r.usage.Covers)})
}
