// Package conversation builds the context of a stored conversation: it reads the messages from the store, decodes
// them with the codec of their format, and has the pipeline assemble them. Activities, the command line and the HTTP
// API all use it, so that the same context is measured, summarized and sent.
//
//	view.go      a conversation at a point in time, and its context
//	settings.go  the settings that apply to a conversation
//	models.go    the window and calibration of its model
//	summary.go   the text of a summary message
//	message.go   messages in the form in which they are stored
//	import.go    import of conversations from a file
package conversation

import (
	"context"
	"fmt"

	"precis/internal/config"
	"precis/internal/llm"
	"precis/internal/store"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

// View is a conversation at a point in time.
type View struct {
	// Source.Conversation.Window is the result of Window, not only the client's value.
	contexts.Source
	Settings config.Settings
	// Models has the known models.
	Models llm.Models
	Codec  transcript.Codec
	// Messages are the decoded messages that are not covered: those that the marker carries, then the tail.
	Messages []pipeline.Message
}

// Load reads a conversation up to message upTo, or up to its head if upTo is 0.
func Load(ctx context.Context, s *store.Store, ref store.ConversationRef, in Installation,
	upTo int64,
) (View, error) {
	return load(ctx, s, ref, in, contexts.Options{UpTo: upTo})
}

// LoadBeneathDigest is Load with the messages that an active digest covers in place of the digest, for a run in which a
// model's summary replaces it.
func LoadBeneathDigest(ctx context.Context, s *store.Store, ref store.ConversationRef, in Installation,
	upTo int64,
) (View, error) {
	return load(ctx, s, ref, in, contexts.Options{UpTo: upTo, BeneathDigest: true})
}

func load(ctx context.Context, s *store.Store, ref store.ConversationRef, in Installation,
	o contexts.Options,
) (View, error) {
	live, err := s.Contexts.Read(ctx, ref, o)
	if err != nil {
		return View{}, err
	}
	return NewView(live, in)
}

// NewView returns the view of a source.
func NewView(live contexts.Source, in Installation) (View, error) {
	v := View{Source: live, Models: in.Models}
	v.Conversation.Window = Window(live.Conversation, in.Models)
	v.Settings, _ = SettingsOf(in.Settings, live.Conversation) // a change of settings reports those that are not valid
	var err error
	if v.Codec, err = transcript.CodecFor(transcript.Format(live.Conversation.Format)); err != nil {
		return v, fmt.Errorf("conversation %s: %w", live.Conversation.Ref, err)
	}
	v.Messages = make([]pipeline.Message, 0, len(live.Carried)+len(live.Tail))
	for _, list := range [][]conversations.Message{live.Carried, live.Tail} {
		decoded, err := Decode(v.Codec, list)
		if err != nil {
			return v, fmt.Errorf("conversation %s: %w", live.Conversation.Ref, err)
		}
		v.Messages = append(v.Messages, decoded...)
	}
	return v, nil
}

// Decode decodes stored messages.
func Decode(codec transcript.Codec, stored []conversations.Message) ([]pipeline.Message, error) {
	out := make([]pipeline.Message, 0, len(stored))
	for _, s := range stored {
		m, err := codec.Decode(s.Native)
		if err != nil {
			return nil, pipeline.Errorf(pipeline.MalformedHistory, "message %d cannot be read: %w", s.Seq, err)
		}
		m.Seq, m.ID, m.Tokens = s.Seq, s.ClientID, s.Tokens
		// The role and kind that the client gave take precedence over those derived from the native message.
		m.Role, m.Kind = s.Role, s.Kind
		out = append(out, m)
	}
	return out, nil
}

// Live returns the messages that a compaction works on: the prior summary first, if there is one, then all messages.
func (v View) Live() []pipeline.Message {
	if v.Marker == nil || v.Marker.Summary == "" {
		return v.Messages
	}
	text := string(v.Summary)
	prior := pipeline.Message{
		Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
		Parts:  []pipeline.Part{{Kind: pipeline.PartText, Text: text}},
		Tokens: v.Marker.SummaryTokens,
	}
	return append([]pipeline.Message{prior}, v.Messages...)
}

// SeenSeq returns the number of the newest message when the active marker was made, 0 without a marker or if unknown.
func (v View) SeenSeq() int64 {
	if v.Marker == nil {
		return 0
	}
	return max(v.Marker.ValveUpTo, v.Marker.CoversTo)
}

// Context returns what the model is sent next. The error is that of ctx, if it is done first.
func (v View) Context(ctx context.Context) (pipeline.Context, error) {
	in := pipeline.ContextInput{
		Live: v.Messages, Settings: v.Settings.Settings, Window: v.Conversation.Window, Vendor: v.APIType(),
		OldRules: v.OldRules,
	}
	if v.Marker != nil {
		in.SummaryText, in.Native = string(v.Summary), v.native()
		in.Valve, in.ValveUpTo, in.Calibration = v.Marker.Valve, v.Marker.ValveUpTo, v.Marker.Calibration
	}
	for _, e := range v.Source.Enrichments {
		in.Enrichments = append(in.Enrichments, pipeline.Enrichment{Key: e.Key, Text: string(e.Value)})
	}
	return pipeline.BuildContext(ctx, in)
}

// After returns the view as it will be after the marker is applied: its summary replaces the covered messages.
func (v View) After(m markers.NewMarker, summary string) View {
	after := v
	after.Marker = &markers.Marker{NewMarker: m}
	after.Summary, after.Source.Native = []byte(summary), nil
	carried := make(map[int64]bool, len(m.Carried))
	for _, seq := range m.Carried {
		carried[seq] = true
	}
	after.Messages = nil
	for _, msg := range v.Messages {
		if msg.Seq > m.CoversTo || carried[msg.Seq] {
			after.Messages = append(after.Messages, msg)
		}
	}
	return after
}

// Overhead returns the local estimate of the tokens of a request beside the context: system prompt and tools.
func (v View) Overhead() int {
	if n := v.Conversation.OverheadTokens; n >= 0 {
		return n
	}
	return pipeline.EstimateText(string(v.Conversation.System)) + pipeline.EstimateText(string(v.Conversation.Tools))
}

// Calibration is Calibration of the conversation.
func (v View) Calibration() float64 { return Calibration(v.Conversation, v.Models) }

// APIType is the kind of vendor API that the conversation's messages are for.
func (v View) APIType() string { return APIType(transcript.Format(v.Conversation.Format)) }

// APIType gives the kind of vendor API that a format's messages are for: the name of its format. A format whose
// messages are for none of them has its own name.
func APIType(f transcript.Format) string {
	if api := f.API(); api != "" {
		return string(api)
	}
	return string(f)
}

// TriggerInput returns the input of the trigger for a context of the view.
func (v View) TriggerInput(c pipeline.Context) pipeline.TriggerInput {
	overhead := v.Overhead()
	in := pipeline.TriggerInput{
		Window:       v.Conversation.Window,
		MaxOutput:    v.Conversation.MaxOutput,
		ServerTokens: v.Conversation.Usage.Tokens,
		ServerStale:  v.Conversation.Usage.Stale,
		EstimateAll:  c.Stats.Tokens + overhead,
		Calibration:  v.Calibration(),
		Prepared:     v.Prepared != nil,
	}
	switch {
	case in.ServerTokens > 0 && in.ServerStale: // of a context that is no longer there to be measured
		in.EstimateServerPart = v.Conversation.Usage.Estimate
	case in.ServerTokens > 0:
		in.EstimateServerPart = in.EstimateAll
		for _, it := range c.Items {
			if it.Message != nil && it.Message.Seq > v.Conversation.Usage.CoversSeq {
				in.EstimateServerPart -= pipeline.EstimateMessage(*it.Message)
			}
		}
		in.EstimateServerPart = max(in.EstimateServerPart, 0)
	}
	covered := int64(0)
	if v.Marker != nil {
		covered = v.Marker.CoversTo
	}
	for _, m := range v.Messages {
		if m.Genuine() && m.Seq > covered {
			in.Turns++
		}
	}
	in.Turns = TurnsToSummarize(in.Turns, v.Settings)
	return in
}

// TurnsToSummarize is how many of the genuine user messages behind the marker a compaction would summarize: the last
// one begins the tail.
func TurnsToSummarize(live int, s config.Settings) int {
	if s.PreserveLastUser {
		return live
	}
	return max(live-1, 0)
}
