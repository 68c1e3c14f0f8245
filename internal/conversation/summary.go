package conversation

import (
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"

	"precis/internal/store/markers"
	"precis/pipeline"
)

// Draft is what the text of a summary message is made from beside the conversation. It is kept on the marker, so that
// a prepared summary is put into the words of the moment in which it takes effect.
type Draft struct {
	// Summary is the artifact with what the summarizer wrote.
	Summary string `json:"summary"`
	// Omitted is the number of messages that the summarizer was not shown, Repeated that of the messages which are
	// summarized and follow verbatim as well.
	Omitted  int `json:"omitted,omitempty"`
	Repeated int `json:"repeated,omitempty"`
}

// JSON is the draft as it is kept.
func (d Draft) JSON() json.RawMessage {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // a string and numbers: it cannot fail
	}
	return b
}

// DraftOf reads a marker's draft; ok is false for a marker that has none.
func DraftOf(m markers.Marker) (d Draft, ok bool, err error) {
	if len(m.Draft) == 0 {
		return d, false, nil
	}
	if err := json.Unmarshal(m.Draft, &d); err != nil {
		return d, false, fmt.Errorf("marker %s: read its draft: %w", m.ID, err)
	}
	return d, d.Summary != "", nil
}

// SummaryText is the text of the summary message of a marker, as the conversation stands. view is what its model sees
// now; whole are the messages that the marker was planned on, which are the same but where it replaces a digest.
func SummaryText(view, whole View, m markers.NewMarker, d Draft, summary string) string {
	return pipeline.SummaryText(pipeline.SummaryTextInput{
		Summary: summary, Digest: m.Digest, UnderWay: pipeline.UnderWay(view.Messages), ProposeOnly: view.proposeOnly(),
		TailKept: whole.tailKept(m), Repeated: d.Repeated, OmittedMessages: d.Omitted,
		TranscriptHint: view.MemoryHint(),
	})
}

// TranscriptHint says where the full transcript is, "" when it is not kept.
func (v View) TranscriptHint() string {
	if v.Conversation.Ephemeral {
		return ""
	}
	return fmt.Sprintf("conversation %s, messages 1 to %d", v.Conversation.Ref.ID, v.Head())
}

// memoryTool is the tool of the MCP server by which its others are known to be there: clients put a name of theirs
// before it.
var memoryTool = regexp.MustCompile(`"name"\s*:\s*"([A-Za-z0-9_.:/-]{0,128})search_transcript"`)

// MemoryHint says how an agent gets back what a summary stands for, "" when that is not kept: by its tools, where
// they are among those that the conversation was given, and else by the API. It says nothing of tools that are not
// there.
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

// LookAhead appends to the summary of a prepared marker what the agent has used behind the cut although it stands only
// before it, and gives how many entries that are.
func (v View) LookAhead(m markers.NewMarker, summary string) (string, int) {
	var source, tail []pipeline.Message
	for _, msg := range v.Live() {
		if msg.Seq > m.CoversTo {
			tail = append(tail, msg)
		} else {
			source = append(source, msg)
		}
	}
	text, found := pipeline.VerifySummary(summary, source, tail)
	if v.Settings.Redact {
		text = pipeline.Redact(text) // what the check appended is the source's own
	}
	return text, len(found.Appended)
}

// tailKept says whether messages follow the summary verbatim.
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

// modeThatProposes are the words by which a mode prompt tells that the agent only proposes.
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
