package memory_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"precis/internal/conversation"
	"precis/internal/memory"
	"precis/internal/store"
	"precis/internal/store/conversations"
	"precis/internal/testkit/corpus"
	"precis/pipeline"
	"precis/pipeline/transcript"
)

var opened = regexp.MustCompile(`(?m)^<message seq="(\d+)" role="[a-z]+">$`)

// Recorded transcripts of every format: each message stands in the segments once, in order, and what was said last in
// the middle of one is found in the segment that holds it.
func TestRecordedTranscripts(t *testing.T) {
	t.Parallel()
	const most = 400 << 10 // larger ones are more of the same
	m := newMemory(t)
	walked := 0
	for _, f := range corpus.Files(t, "") {
		if f.Size > most || strings.HasSuffix(f.Name, "ui_messages.json") || strings.HasSuffix(f.Name, ".md") {
			continue
		}
		for _, ref := range imported(t, m, f.Path) {
			walked++
			checkMemory(t, m, ref, f.Name)
		}
	}
	if corpus.Given() && walked < 10 {
		t.Errorf("only %d conversations", walked)
	}
}

func imported(t *testing.T, m memory.Memory, path string) (refs []store.ConversationRef) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	decoder, err := transcript.NewDecoder(file, transcript.Options{})
	if err != nil {
		return nil // no transcript: other tests tell
	}
	got, err := conversation.ImportFile(t.Context(), m.Store, decoder,
		conversation.ImportOptions{Tenant: store.DefaultTenant})
	if err != nil {
		return nil
	}
	for _, im := range got.Conversations {
		if im.Messages > 0 {
			refs = append(refs, im.Conversation.Ref)
		}
	}
	return refs
}

func checkMemory(t *testing.T, m memory.Memory, ref store.ConversationRef, name string) {
	t.Helper()
	c, err := m.Store.Conversations.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	compacted(t, m, ref, max(1, c.HeadSeq/2))
	list(t, m, ref)
	compacted(t, m, ref, c.HeadSeq)
	var seqs []string
	for _, e := range list(t, m, ref)[1:] {
		text := read(t, m, ref, e.Name)
		if len(text) > memory.SegmentBytes || int64(len(text)) != e.Bytes {
			t.Errorf("%s: %s has %d bytes, listed with %d", name, e.Name, len(text), e.Bytes)
		}
		for _, found := range opened.FindAllStringSubmatch(text, -1) {
			seqs = append(seqs, found[1])
		}
	}
	for i := range c.HeadSeq {
		if i >= int64(len(seqs)) || seqs[i] != fmt.Sprint(i+1) {
			t.Fatalf("%s: message %d of %d is not in its place", name, i+1, c.HeadSeq)
		}
	}
	if int64(len(seqs)) != c.HeadSeq {
		t.Errorf("%s: %d messages stand in the segments, it has %d", name, len(seqs), c.HeadSeq)
	}
	codec, err := transcript.CodecFor(transcript.Format(c.Format))
	if err != nil {
		t.Fatal(err)
	}
	for msg, err := range m.Store.Messages.Walk(t.Context(), ref, (c.HeadSeq+1)/2, (c.HeadSeq+1)/2) {
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := conversation.Decode(codec, []conversations.Message{msg})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		words := strings.Fields(pipeline.RenderMessage(decoded[0]))
		if len(words) == 0 {
			continue
		}
		query := strings.Trim(words[len(words)-1], `"-`)
		if len(query) > 200 || !regexp.MustCompile(`\pL|\d`).MatchString(query) || strings.EqualFold(query, "or") ||
			strings.Contains(query, `"`) {
			continue
		}
		found, err := m.Search(t.Context(), ref, `"`+query+`"`, memory.MaxHits, "")
		if err != nil {
			t.Fatalf("%s: %q: %v", name, query, err)
		}
		there := found.Next != ""
		for _, h := range found.Hits {
			if h.Seq == msg.Seq {
				there = true
				if _, text, err := m.Read(t.Context(), ref, h.Segment); err != nil ||
					!strings.Contains(text, fmt.Sprintf(`<message seq="%d"`, h.Seq)) {
					t.Errorf("%s: message %d is not in %q, %v", name, h.Seq, h.Segment, err)
				}
			}
		}
		if !there {
			t.Errorf("%s: %q of message %d is not found", name, query, msg.Seq)
		}
	}
}
