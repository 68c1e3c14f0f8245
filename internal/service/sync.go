package service

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/conversation"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
)

// syncTries bounds how often a sync is retried because messages were appended concurrently.
const syncTries = 5

// What a client's list can be.
const (
	SyncedHistory = "history"
	SyncedContext = "context"
)

// SyncRequest is a client's whole list of messages.
type SyncRequest struct {
	// Messages are all native messages that the client has: the full history, or a context that it received and the
	// messages after it.
	Messages []json.RawMessage
	Usage    json.RawMessage
	// ContextVersion is as in AppendRequest.
	ContextVersion *int64
}

// Sync appends what is new in the client's whole list. A message equals the stored one if it is the same JSON value,
// since clients may rewrite the JSON that they hold. The stored history is compared by one hash, so that the cost in
// the database is that of the new messages.
//
// A client may also send a context that it received, and the messages after it. Messages that precis made (the
// summary, live state, placeholders) are recognized and not stored, and tool results match in their shortened form.
// The error has CodeStale if the list differs from the stored messages in any other way. A list that is shorter than
// the conversation adds nothing.
func (s *Service) Sync(ctx context.Context, ref store.ConversationRef, req SyncRequest) (wire.Synced, error) {
	if len(req.Messages) == 0 {
		return wire.Synced{}, invalid("messages", "is empty: send the whole list")
	}
	for range syncTries {
		out, err := s.syncOnce(ctx, ref, req)
		if errors.Is(err, store.ErrStaleSequence) {
			continue // messages were appended concurrently
		}
		return out, refused(err)
	}
	return wire.Synced{}, &Error{
		Code:   CodeUnavailable,
		Detail: "other clients keep appending to the conversation: try again",
	}
}

func (s *Service) syncOnce(ctx context.Context, ref store.ConversationRef, req SyncRequest) (wire.Synced, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return wire.Synced{}, err
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	if err != nil {
		return wire.Synced{}, err
	}
	list := newClientList(codec, req.Messages)
	found, err := s.match(ctx, ref, list)
	if err != nil {
		return wire.Synced{}, err
	}
	batch, err := decodeAll(codec, req.Messages[found.matched:], nil)
	if err != nil {
		return wire.Synced{}, behind(err, found.matched)
	}
	usage := usageReport(req.Usage, batch, req.ContextVersion)
	if usage != nil && usage.Covers == nil { // of a request whose answer is stored already
		usage.CoversSeq = found.head
		if found.as == SyncedHistory {
			usage.CoversSeq = int64(found.matched)
		}
	}
	tc := &triggerCheck{s: s}
	res, err := s.Store.Changes.Append(ctx, ref, batch,
		changes.AppendOptions{IfSeq: &found.head, Usage: usage, Check: tc.evaluate})
	if err != nil {
		return wire.Synced{}, err
	}
	return wire.Synced{Appended: s.appended(ctx, ref, res, tc), Matched: found.matched, As: found.as}, nil
}

// behind shifts the message index in an error's field by the number of matched messages.
func behind(err error, matched int) error {
	e, ok := err.(*Error)
	if !ok {
		return err
	}
	var i int
	if n, _ := fmt.Sscanf(e.Field, "messages[%d]", &i); n == 1 {
		moved := *e
		moved.Field = fmt.Sprintf("messages[%d]", i+matched)
		return &moved
	}
	return err
}

// matching is the result of comparing a client's list to the conversation.
type matching struct {
	as string
	// matched is how many messages of the list are stored, head the number of the conversation's last message.
	matched int
	head    int64
}

// clientList is a client's list with its fingerprints.
type clientList struct {
	codec        transcript.Codec
	natives      []json.RawMessage
	fingerprints []store.Hash
	// chains has the sync chain after each message.
	chains []store.Hash
}

func newClientList(codec transcript.Codec, natives []json.RawMessage) clientList {
	l := clientList{codec: codec, natives: natives}
	var chain store.Hash
	for _, native := range natives {
		fingerprint := store.Hash(rawjson.Fingerprint(native))
		chain = conversations.SyncChain(chain, fingerprint)
		l.fingerprints, l.chains = append(l.fingerprints, fingerprint), append(l.chains, chain)
	}
	return l
}

// match compares the list to the history, and if it differs to the contexts that the client may have received.
func (s *Service) match(ctx context.Context, ref store.ConversationRef, l clientList) (matching, error) {
	state, err := s.Store.Messages.SyncState(ctx, ref)
	if err != nil {
		return matching{}, err
	}
	same, err := s.sameHistory(ctx, ref, l, state)
	if err != nil {
		return matching{}, err
	}
	if int64(same) == min(state.Head, int64(len(l.natives))) {
		return matching{as: SyncedHistory, matched: same, head: state.Head}, nil
	}
	found, err := s.matchContext(ctx, ref, l)
	var stale *mismatch
	if errors.As(err, &stale) {
		at := max(stale.at, same)
		return found, &Error{
			Code: CodeStale, Field: fmt.Sprintf("messages[%d]", at),
			Detail: fmt.Sprintf(
				"differs from the stored message, after %d messages that are equal. Stored messages do not "+
					"change: send them unchanged, and new messages after them", at),
		}
	}
	return found, err
}

// sameHistory returns how many messages at the beginning of the list are equal to the first stored ones.
func (s *Service) sameHistory(ctx context.Context, ref store.ConversationRef, l clientList,
	state conversations.SyncState,
) (int, error) {
	most := int(min(state.Head, int64(len(l.natives))))
	if most == 0 {
		return 0, nil
	}
	if state.Chain == nil {
		return s.compareAll(ctx, ref, l, state.Head)
	}
	if int64(most) == state.Head && l.chains[most-1] == *state.Chain {
		return most, nil
	}
	// The chains agree up to some message and differ after it: find that message by bisection.
	agree := func(n int) (bool, error) {
		chains, err := s.Store.Messages.SyncChains(ctx, ref, []int64{int64(n)})
		return err == nil && chains[int64(n)] == l.chains[n-1], err
	}
	if whole, err := agree(most); err != nil || whole {
		return most, err
	}
	var failure error
	// the number of messages that agree is the first i for which i+1 do not
	same := sort.Search(most-1, func(i int) bool {
		ok, err := agree(i + 1)
		failure = errors.Join(failure, err)
		return !ok
	})
	return same, failure
}

// compareAll is sameHistory for a conversation without a sync chain. It stores the chain if the whole history matches.
func (s *Service) compareAll(ctx context.Context, ref store.ConversationRef, l clientList, head int64) (int, error) {
	same := 0
	for m, err := range s.Store.Messages.Walk(ctx, ref, 1, head) {
		if err != nil {
			return same, err
		}
		if same == len(l.fingerprints) || store.Hash(rawjson.Fingerprint(m.Native)) != l.fingerprints[same] {
			return same, nil
		}
		same++
	}
	if int64(same) == head {
		return same, s.Store.Messages.KeepSyncChain(ctx, ref, head, l.chains[same-1])
	}
	return same, nil
}

// mismatch is the first message of a list that differs from the stored one.
type mismatch struct{ at int }

func (m *mismatch) Error() string { return fmt.Sprintf("message %d differs", m.at) }

// matchContext compares the list to a context that the client may have received.
func (s *Service) matchContext(ctx context.Context, ref store.ConversationRef, l clientList) (matching, error) {
	c, err := s.Store.Conversations.Get(ctx, ref)
	if err != nil {
		return matching{}, err
	}
	from, err := s.summaryIn(ctx, ref, l, c)
	if err != nil {
		return matching{}, err
	}
	live, err := s.Store.Contexts.Read(ctx, ref, contexts.Options{From: &from})
	if err != nil {
		return matching{}, err
	}
	view, err := conversation.NewView(live, s.installation())
	if err != nil {
		return matching{}, err
	}
	view.Settings.MaxInputTokens = 0 // turns that were left out for it are skipped by align
	entries, err := entriesOf(ctx, view)
	if err != nil {
		return matching{}, err
	}
	found := matching{as: SyncedContext, head: live.Conversation.HeadSeq}
	found.matched, err = l.align(entries)
	return found, err
}

// summaryIn returns the id of the marker whose summary is in the list, whatever its status is now. Without a summary,
// the list may be a context of the full history (""), or one of the active marker if that has only shortened the
// tail.
func (s *Service) summaryIn(ctx context.Context, ref store.ConversationRef, l clientList,
	c conversations.Conversation,
) (string, error) {
	markers, err := s.Store.Markers.List(ctx, ref)
	if err != nil {
		return "", err
	}
	byText := map[string]string{}
	plain := ""
	for _, m := range slices.Backward(markers) {
		if m.Summary != "" {
			byText[m.Summary] = m.ID
		} else if m.ID == c.ActiveMarker {
			plain = m.ID
		}
	}
	for _, native := range l.natives {
		m, err := l.codec.Decode(native)
		if err != nil {
			continue
		}
		for _, text := range texts(m) {
			sum := sha256.Sum256([]byte(text))
			if id, ok := byText[store.Hash(sum).String()]; ok {
				return id, nil
			}
		}
		if m.Role == pipeline.RoleAssistant {
			break // a summary comes before all messages since
		}
	}
	return plain, nil
}

// texts returns the text parts of a message.
func texts(m pipeline.Message) []string {
	var out []string
	for _, p := range m.Parts {
		if p.Kind == pipeline.PartText {
			out = append(out, p.Text)
		}
	}
	return out
}

// entry is a message of a context that precis built.
type entry struct {
	// given is the fingerprint of the message as in the context, stored that of the stored message. They are equal if
	// the message was not shortened.
	given, stored store.Hash
	// message is the stored message, nil for one that precis made.
	message *pipeline.Message
}

func entriesOf(ctx context.Context, view conversation.View) ([]entry, error) {
	current, err := view.Context(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(current.Items))
	for _, item := range current.Items {
		encoded, err := transcript.EncodeItems(view.Codec, []pipeline.ContextItem{item})
		if err != nil {
			return nil, err
		}
		e := entry{message: item.Message}
		if item.Message != nil {
			e.stored = store.Hash(rawjson.Fingerprint(item.Message.Native))
		}
		e.given = e.stored
		if len(encoded) == 1 {
			e.given = store.Hash(rawjson.Fingerprint(encoded[0]))
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// align compares the list to the entries in order and returns how many messages of the list are matched. Messages
// that precis made may be missing on either side: live state changes, and a placeholder for a result is replaced by
// the result.
func (l clientList) align(entries []entry) (int, error) {
	i, j := 0, 0
	began := false // a message after the head was matched
	for i < len(l.natives) && j < len(entries) {
		e := entries[j]
		switch {
		case l.fingerprints[i] == e.given || l.fingerprints[i] == e.stored || l.shortened(i, e):
			began = began || e.message != nil && e.message.Role != pipeline.RoleSystem &&
				e.message.Kind != pipeline.KindUserInfo
			i++
			j++
		case e.message == nil:
			j++
		case l.ours(i):
			i++
		case !began && l.later(i, entries[j:]) > 0: // the oldest turns were left out for an input budget
			j += l.later(i, entries[j:])
		default:
			return i, &mismatch{at: i}
		}
	}
	for j < len(entries) && entries[j].message == nil {
		j++
	}
	return i, nil
}

// later returns the index of the entry after the first one that the list's message matches, 0 if there is none.
func (l clientList) later(i int, entries []entry) int {
	for n, e := range entries {
		if n > 0 && e.message != nil &&
			(l.fingerprints[i] == e.given || l.fingerprints[i] == e.stored || l.shortened(i, e)) {
			return n
		}
	}
	return 0
}

// The frames of the messages that precis makes. They are only compared where a message of the list differs from the
// stored one, so that a user's message with such a frame is not dropped otherwise.
const (
	stateOpen, stateClose     = `<current_state name="`, "</current_state>"
	summaryOpen, summaryClose = "<conversation_summary>", "</conversation_summary>"
)

// ours reports whether a message of the list was made by precis for an earlier context.
func (l clientList) ours(i int) bool {
	m, err := l.codec.Decode(l.natives[i])
	if err != nil {
		return false
	}
	if m.Role == pipeline.RoleTool {
		return len(m.Results()) > 0 && slices.ContainsFunc(m.Parts, func(p pipeline.Part) bool {
			return slices.ContainsFunc(p.Content, func(c pipeline.Part) bool { return pipeline.IsMadeText(c.Text) })
		})
	}
	said := texts(m)
	if m.Role != pipeline.RoleUser || len(said) != 1 || len(m.Parts) != 1 {
		return false
	}
	text := strings.TrimSpace(said[0])
	return strings.HasPrefix(text, stateOpen) && strings.HasSuffix(text, stateClose) ||
		strings.HasPrefix(text, summaryOpen) && strings.Contains(text, summaryClose) || pipeline.IsMadeText(text)
}

// shortened reports whether a message of the list is the entry's message with shortened tool results: an earlier
// context may have had other results in full.
func (l clientList) shortened(i int, e entry) bool {
	if e.message == nil || len(e.message.Results()) == 0 {
		return false
	}
	m, err := l.codec.Decode(l.natives[i])
	if err != nil || m.Role != e.message.Role || len(m.Parts) != len(e.message.Parts) {
		return false
	}
	cut := false
	for n, p := range m.Parts {
		have := e.message.Parts[n]
		switch {
		case p.Kind != have.Kind || p.CallID != have.CallID:
			return false
		case p.Kind != pipeline.PartToolResult:
			if rawjson.Fingerprint(rawOf(p)) != rawjson.Fingerprint(rawOf(have)) {
				return false
			}
		case contentText(p) != contentText(have):
			if !pipeline.IsShortened(contentText(p)) {
				return false
			}
			cut = true
		}
	}
	return cut
}

func rawOf(p pipeline.Part) []byte {
	if len(p.Raw) > 0 {
		return p.Raw
	}
	return []byte(p.Text)
}

func contentText(p pipeline.Part) string {
	var b strings.Builder
	for _, c := range p.Content {
		b.WriteString(c.Text)
	}
	return b.String()
}
