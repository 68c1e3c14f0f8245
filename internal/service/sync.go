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

// syncTries bounds how often a sync starts over because somebody else has appended meanwhile.
const syncTries = 5

// What a client's list is taken for.
const (
	SyncedHistory = "history"
	SyncedContext = "context"
)

// SyncRequest is a client's whole list of messages.
type SyncRequest struct {
	// Messages are native, all that the client holds: the full history, or a context that it was given and what
	// came after it.
	Messages []json.RawMessage
	Usage    json.RawMessage
	// ContextVersion is that of AppendRequest.
	ContextVersion *int64
}

// Sync appends what is new in the client's whole list. A message is the stored one when it is the same JSON value,
// however it is written: clients read and write what they hold. The stored history is compared by one hash, so that the
// cost in the database is that of what is new.
//
// A client may also send the context back that it was given, with what came after: the summary, state and results that
// we made are recognized and not taken for messages, and so are tool results in the shortened form in which they were
// given. A list whose past differs from what is stored in any other way is CodeStale. One that ends before what is
// stored adds nothing.
func (s *Service) Sync(ctx context.Context, ref store.ConversationRef, req SyncRequest) (wire.Synced, error) {
	if len(req.Messages) == 0 {
		return wire.Synced{}, invalid("messages", "is empty: send the whole list")
	}
	for range syncTries {
		out, err := s.syncOnce(ctx, ref, req)
		if errors.Is(err, store.ErrStaleSequence) {
			continue // an append came in between
		}
		return out, refused(err)
	}
	return wire.Synced{}, &Error{
		Code:   CodeUnavailable,
		Detail: "others append to the conversation all the time: try again",
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
	if usage != nil && usage.Covers == nil { // of a request whose answer was there already
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

// behind moves the index in an error's field by those that were matched.
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

// matching is how far a client's list is what the conversation holds.
type matching struct {
	as string
	// matched counts the list's messages that are there, head is the conversation's last message at that moment.
	matched int
	head    int64
}

// clientList is what a client holds.
type clientList struct {
	codec   transcript.Codec
	natives []json.RawMessage
	prints  []store.Hash
	// chains has the sync chain behind each message.
	chains []store.Hash
}

func newClientList(codec transcript.Codec, natives []json.RawMessage) clientList {
	l := clientList{codec: codec, natives: natives}
	var chain store.Hash
	for _, native := range natives {
		print := store.Hash(rawjson.Fingerprint(native))
		chain = conversations.SyncChain(chain, print)
		l.prints, l.chains = append(l.prints, print), append(l.chains, chain)
	}
	return l
}

// match tells what the list is.
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
			Detail: fmt.Sprintf("is not what is stored: the list and the conversation part here, behind %d "+
				"messages that are the same. The past does not change; send new messages behind it", at),
		}
	}
	return found, err
}

// sameHistory counts the messages at the front of the list that are the stored ones from the first on.
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
	// The chains agree up to a point and never after it: look for that point.
	agree := func(n int) (bool, error) {
		chains, err := s.Store.Messages.SyncChains(ctx, ref, []int64{int64(n)})
		return err == nil && chains[int64(n)] == l.chains[n-1], err
	}
	if whole, err := agree(most); err != nil || whole {
		return most, err
	}
	var failure error
	same := sort.Search(most-1, func(i int) bool { // how many messages agree: the first i for which i+1 do not
		ok, err := agree(i + 1)
		failure = errors.Join(failure, err)
		return !ok
	})
	return same, failure
}

// compareAll reads a history whose sync chain is not known, and notes the chain when all of it is the client's.
func (s *Service) compareAll(ctx context.Context, ref store.ConversationRef, l clientList, head int64) (int, error) {
	same := 0
	for m, err := range s.Store.Messages.Walk(ctx, ref, 1, head) {
		if err != nil {
			return same, err
		}
		if same == len(l.prints) || store.Hash(rawjson.Fingerprint(m.Native)) != l.prints[same] {
			return same, nil
		}
		same++
	}
	if int64(same) == head {
		return same, s.Store.Messages.KeepSyncChain(ctx, ref, head, l.chains[same-1])
	}
	return same, nil
}

// mismatch is where a list parts from what is stored.
type mismatch struct{ at int }

func (m *mismatch) Error() string { return fmt.Sprintf("message %d differs", m.at) }

// matchContext takes the list for a context that we gave, and what came after it.
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
	view.Settings.MaxInputTokens = 0 // whichever turns were left out for it
	entries, err := entriesOf(view)
	if err != nil {
		return matching{}, err
	}
	found := matching{as: SyncedContext, head: live.Conversation.HeadSeq}
	found.matched, err = l.align(entries)
	return found, err
}

// summaryIn gives the marker whose summary stands in the list, whatever has become of it since. Without one the list
// may be a context of the full history, or of a tail that was squeezed.
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
			break // a summary stands before everything that was said since
		}
	}
	return plain, nil
}

// texts are the text parts of a message.
func texts(m pipeline.Message) []string {
	var out []string
	for _, p := range m.Parts {
		if p.Kind == pipeline.PartText {
			out = append(out, p.Text)
		}
	}
	return out
}

// entry is one message of a context of ours.
type entry struct {
	// given is the fingerprint as it is given, stored that of the stored message; both the same where it is not edited.
	given, stored store.Hash
	// message is the stored one, nil for one that we made.
	message *pipeline.Message
}

func entriesOf(view conversation.View) ([]entry, error) {
	items := view.Context().Items
	entries := make([]entry, 0, len(items))
	for _, item := range items {
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

// align walks over the list and the entries side by side, and gives how many of the list's messages stand for entries.
// What we made may be missing on either side: state changes, and a call gets its result at last.
func (l clientList) align(entries []entry) (int, error) {
	i, j := 0, 0
	began := false // a message behind the head has been met
	for i < len(l.natives) && j < len(entries) {
		e := entries[j]
		switch {
		case l.prints[i] == e.given || l.prints[i] == e.stored || l.shortened(i, e):
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

// later is the index of the entry that the list's message stands for, 0 when there is none behind the first.
func (l clientList) later(i int, entries []entry) int {
	for n, e := range entries {
		if n > 0 && e.message != nil && (l.prints[i] == e.given || l.prints[i] == e.stored || l.shortened(i, e)) {
			return n
		}
	}
	return 0
}

// The frames of what we put into a context. Nothing that a person wrote is matched by them alone: only where the stored
// message is another one is a message looked at, and then it is left out and not stored.
const (
	stateOpen, stateClose     = `<current_state name="`, "</current_state>"
	summaryOpen, summaryClose = "<conversation_summary>", "</conversation_summary>"
)

// ours says whether a message of the list is one that we made, of an earlier context.
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

// shortened says whether a message of the list is the entry's with its tool results cut: an earlier context had others
// in full, or fewer of them.
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
