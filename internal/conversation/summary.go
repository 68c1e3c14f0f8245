package conversation

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"

	"precis/internal/store/markers"
	"precis/pipeline"
)

// Draft has what the text of a summary message is rendered from, beside the conversation. It is stored on the marker,
// so that a prepared summary is rendered when it takes effect.
type Draft struct {
	// Summary is the artifact with the text of the summarizer.
	Summary string `json:"summary"`
	// Omitted is the number of messages that were not in the summarizer's input, Repeated the number of those that are
	// summarized and follow verbatim as well.
	Omitted  int `json:"omitted,omitempty"`
	Repeated int `json:"repeated,omitempty"`
}

// JSON returns the draft as it is stored.
func (d Draft) JSON() json.RawMessage {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // a string and numbers: it cannot fail
	}
	return b
}

// DraftOf returns a marker's draft; ok is false if the marker has none.
func DraftOf(m markers.Marker) (d Draft, ok bool, err error) {
	if len(m.Draft) == 0 {
		return d, false, nil
	}
	if err := json.Unmarshal(m.Draft, &d); err != nil {
		return d, false, fmt.Errorf("marker %s: read its draft: %w", m.ID, err)
	}
	return d, d.Summary != "", nil
}

// SummaryText renders the summary message of a marker for the current conversation. view has the current context; whole
// has the messages that the marker was planned on, which are different only if it replaces a digest.
func SummaryText(view, whole View, m markers.NewMarker, d Draft, summary string) string {
	return pipeline.SummaryText(pipeline.SummaryTextInput{
		Summary: summary, Digest: m.Digest, UnderWay: pipeline.UnderWay(view.Messages), ProposeOnly: view.proposeOnly(),
		TailKept: whole.tailKept(m), Repeated: d.Repeated, OmittedMessages: d.Omitted,
		TranscriptHint: view.MemoryHint(), OldRules: view.OldRules,
	})
}

// TranscriptHint returns the sentence on where the full transcript is, "" if it is not kept.
func (v View) TranscriptHint() string {
	if v.Conversation.Ephemeral {
		return ""
	}
	return fmt.Sprintf("conversation %s, messages 1 to %d", v.Conversation.Ref.ID, v.Head())
}

// memoryTool matches a tool of the MCP server. If it is there, so are the other ones. Clients prefix it with a name of
// their own.
var memoryTool = regexp.MustCompile(`"name"\s*:\s*"([A-Za-z0-9_.:/-]{0,128})search_transcript"`)

// MemoryHint returns the sentence on how an agent can read the covered messages, "" if they are not kept: with the
// memory tools, if they are among the conversation's tools, or else by the API.
func (v View) MemoryHint() string {
	hint := v.TranscriptHint()
	if hint == "" {
		return ""
	}
	if m := memoryTool.FindSubmatch(v.Conversation.Tools); m != nil {
		p := string(m[1])
		return fmt.Sprintf("%s. Find what was said with %ssearch_transcript, read it with %sread_messages or "+
			"%sread_segment (INDEX.md).", hint, p, p, p)
	}
	return fmt.Sprintf("messages 1 to %d, over the API of precis: GET /v1/conversations/%s/segments/INDEX.md, and "+
		"…/search with q=WORDS.", v.Head(), url.PathEscape(v.Conversation.Ref.ID))
}

// LookAhead appends to the summary of a prepared marker what the agent has used after the cut, but is only in messages
// before it. It returns the number of appended entries. Only the context can make it fail.
func (v View) LookAhead(ctx context.Context, m markers.NewMarker, summary string) (string, int, error) {
	var source, tail []pipeline.Message
	for _, msg := range v.Live() {
		if msg.Seq > m.CoversTo {
			tail = append(tail, msg)
		} else {
			source = append(source, msg)
		}
	}
	text, found, err := pipeline.VerifySummary(ctx, summary, source, tail)
	if err != nil {
		return "", 0, err
	}
	redaction, err := v.Redaction(ctx, nil) // the appended text comes from the messages
	if err != nil {
		return "", 0, err
	}
	text = redaction.Text(text)
	return text, len(found.Appended), redaction.Err()
}

// tailKept reports whether messages follow the summary verbatim.
func (v View) tailKept(m markers.NewMarker) bool {
	carried := make(map[int64]bool, len(m.Carried))
	for _, s := range m.Carried {
		carried[s] = true
	}
	for _, msg := range v.Messages {
		switch {
		case msg.Seq > m.CoversTo:
			return true
		case carried[msg.Seq] && msg.Role != pipeline.RoleSystem && msg.Kind != pipeline.KindUserInfo:
			return true
		}
	}
	return false
}

// modeThatProposes matches a mode prompt in which the agent only proposes changes.
var modeThatProposes = regexp.MustCompile(
	`(?i)\b(plan(ning)?[ -]?mode|propos\w*|read[ -]?only|do not (change|edit|write)|ask before)\b`)

func (v View) proposeOnly() bool {
	for _, e := range v.Source.Enrichments {
		if e.Key == "mode" && modeThatProposes.Match(e.Value) {
			return true
		}
	}
	return false
}
