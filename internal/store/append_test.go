package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
	"precis/internal/store/runs"
	"precis/pipeline"
)

func TestAppend(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")

	first := appendTurns(t, s, ref, 2)
	if diff := cmp.Diff([]int64{1, 2, 3, 4}, first.Seqs); diff != "" || first.FirstSeq != 1 || first.LastSeq != 4 {
		t.Errorf("%d to %d, %s", first.FirstSeq, first.LastSeq, diff)
	}
	second := appendTurns(t, s, ref, 1)
	if second.FirstSeq != 5 || second.LastSeq != 6 {
		t.Errorf("%d to %d", second.FirstSeq, second.LastSeq)
	}
	c, err := s.Conversations.Get(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Sums, second.Conversation.Sums); diff != "" || c.HeadChain != second.Conversation.HeadChain ||
		c.HeadSeq != 6 || c.Sums.Turns != 3 {
		t.Errorf("%+v is not what the append said: %s", c, diff)
	}
	chain, err := s.Evidence.CheckChain(t.Context(), ref, 0)
	if err != nil || chain != c.HeadChain {
		t.Errorf("chain %s, the head says %s, %v", chain, c.HeadChain, err)
	}
	var sums conversations.Sums
	for m, err := range s.Messages.Walk(t.Context(), ref, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		sums.Tokens += int64(m.Tokens)
		sums.Chars += int64(m.Chars)
		if m.Genuine {
			sums.Turns++
		}
		if m.Sums != sums {
			t.Errorf("message %d: sums %+v, want %+v", m.Seq, m.Sums, sums)
		}
	}

	t.Run("Nothing", func(t *testing.T) {
		res, err := s.Changes.Append(t.Context(), ref, nil, changes.AppendOptions{})
		if err != nil || res.FirstSeq != 0 || res.Conversation.HeadSeq != 6 {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("ExpectedHead", func(t *testing.T) {
		old := int64(5)
		_, err := s.Changes.Append(t.Context(), ref, []conversations.NewMessage{message(pipeline.RoleUser, "late")},
			changes.AppendOptions{IfSeq: &old})
		if !errors.Is(err, store.ErrStaleSequence) || !errors.Is(err, store.ErrConflict) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("Invalid", func(t *testing.T) {
		good := message(pipeline.RoleUser, "x")
		for name, change := range map[string]func(*conversations.NewMessage){
			"role":   func(m *conversations.NewMessage) { m.Role = "person" },
			"empty":  func(m *conversations.NewMessage) { m.Native = nil },
			"tokens": func(m *conversations.NewMessage) { m.Tokens = -1 },
			"id":     func(m *conversations.NewMessage) { m.ClientID = "a\x00" },
			"utf8":   func(m *conversations.NewMessage) { m.ClientID = "\xc3\x28" },
		} {
			bad := good
			change(&bad)
			// The valid message of the same append is not written either.
			if _, err := s.Changes.Append(t.Context(), ref, []conversations.NewMessage{good, bad},
				changes.AppendOptions{}); !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%s: error %v", name, err)
			}
		}
	})
	if c, err := s.Conversations.Get(t.Context(), ref); err != nil || c.HeadSeq != 6 {
		t.Errorf("head %d after what was refused, %v", c.HeadSeq, err)
	}
}

func TestAppendDuplicates(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	list := make([]conversations.NewMessage, 100) // over the size from which COPY is used
	for i := range list {
		list[i] = message(pipeline.RoleUser, fmt.Sprint("m", i))
		list[i].ClientID = fmt.Sprint("id", i)
	}
	if _, err := s.Changes.Append(t.Context(), ref, list[:70], changes.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	res, err := s.Changes.Append(t.Context(), ref, list, changes.AppendOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := make([]int64, 100)
	for i := range want {
		want[i] = int64(i + 1)
	}
	if diff := cmp.Diff(want, res.Seqs); diff != "" || res.Duplicates != 70 || res.FirstSeq != 71 ||
		res.LastSeq != 100 {
		t.Errorf("%d duplicates, %d to %d: %s", res.Duplicates, res.FirstSeq, res.LastSeq, diff)
	}
	// The same id twice in one append is also one message.
	twice := message(pipeline.RoleUser, "twice")
	twice.ClientID = "twice"
	res, err = s.Changes.Append(t.Context(), ref, []conversations.NewMessage{twice, twice}, changes.AppendOptions{})
	if diff := cmp.Diff([]int64{101, 101}, res.Seqs); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if _, err := s.Evidence.CheckChain(t.Context(), ref, 0); err != nil {
		t.Error(err)
	}
	// Another conversation may use the same ids.
	if res, err := s.Changes.Append(t.Context(), newConversation(t, s, "other"), list[:1],
		changes.AppendOptions{}); err != nil ||
		res.Duplicates != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// Concurrent writers leave no gaps and no duplicate numbers, their batches stay together, and the chain is valid.
func TestAppendRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	const writers, rounds, size = 8, 15, 3
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for r := range rounds {
				batch := make([]conversations.NewMessage, size)
				for i := range batch {
					batch[i] = message(pipeline.RoleUser, fmt.Sprintf("%d/%d/%d", w, r, i))
					batch[i].ClientID = fmt.Sprintf("%d/%d/%d", w, r, i)
				}
				res, err := s.Changes.Append(t.Context(), ref, batch, changes.AppendOptions{})
				if err != nil || res.LastSeq != res.FirstSeq+size-1 {
					t.Errorf("%d to %d, %v", res.FirstSeq, res.LastSeq, err)
				}
				if r%5 == 0 { // as a client that did not see the answer
					if again, err := s.Changes.Append(t.Context(), ref, batch, changes.AppendOptions{}); err != nil ||
						again.Duplicates != size || again.Seqs[0] != res.FirstSeq {
						t.Errorf("again: %+v, %v", again, err)
					}
				}
			}
		})
	}
	wg.Wait()
	chain, err := s.Evidence.CheckChain(t.Context(), ref, writers*rounds*size)
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Conversations.Get(t.Context(), ref)
	if err != nil || c.HeadSeq != writers*rounds*size || c.HeadChain != chain || c.Sums.Turns != c.HeadSeq {
		t.Errorf("%+v, %v", c, err)
	}
}

// Of two clients that expect the same head, one gets ErrStaleSequence.
func TestAppendExpectedHeadRace(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	for round := range int64(20) {
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = s.Changes.Append(t.Context(), ref,
					[]conversations.NewMessage{message(pipeline.RoleUser, "x")},
					changes.AppendOptions{IfSeq: &round})
			})
		}
		wg.Wait()
		passed := 0
		for _, err := range errs {
			if err == nil {
				passed++
			} else if !errors.Is(err, store.ErrStaleSequence) {
				t.Error(err)
			}
		}
		if passed != 1 {
			t.Fatalf("round %d: %d passed", round, passed)
		}
	}
}

func TestCheckChainOfNothing(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	if chain, err := s.Evidence.CheckChain(t.Context(), newConversation(t, s, "c"), 0); err != nil || !chain.IsZero() {
		t.Errorf("%s, %v", chain, err)
	}
}

func TestHashText(t *testing.T) {
	t.Parallel()
	for _, h := range []store.Hash{{}, {1, 2, 3}, conversations.Chain(store.Hash{}, 1, "user", "", "", []byte("x"))} {
		text, err := json.Marshal(h)
		var back store.Hash
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil || back != h {
			t.Errorf("%s came back as %s, %v", text, back, err)
		}
	}
	for _, bad := range []string{
		`"x"`, `"00"`, `"` + strings.Repeat("0", 66) + `"`,
		`"` + strings.Repeat("g", 64) + `"`,
	} {
		var h store.Hash
		if err := json.Unmarshal([]byte(bad), &h); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: error %v", bad, err)
		}
	}
}

// Stored chains must stay valid, so the computation must never change.
func TestChainIsFixed(t *testing.T) {
	t.Parallel()
	first := conversations.Chain(store.Hash{}, 1, pipeline.RoleUser, pipeline.KindOrdinary, "id",
		[]byte(`{"role":"user"}`))
	second := conversations.Chain(first, 2, pipeline.RoleAssistant, pipeline.KindSummary, "", []byte{0, 255})
	if got, want := second.String(), "250b9c8dc100f129a16e568b27ebb4ee1a4809d7a324efc5280a74e388bb531d"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestMessagesAreAppendOnly(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 1)
	db := raw(t, url)
	for _, sql := range []string{
		`UPDATE messages SET native = 'x'`, `UPDATE messages SET genuine = NOT genuine`, `DELETE FROM messages`,
		`TRUNCATE messages`,
	} {
		if _, err := db.Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: error %v", sql, err)
		}
	}
	if _, err := s.Evidence.CheckChain(t.Context(), ref, 2); err != nil {
		t.Error(err)
	}
}

// A change in spite of the trigger is found, at the message that was changed.
func TestCheckChainFindsChanges(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	db := raw(t, url)
	for name, sql := range map[string]string{
		"byte": `UPDATE messages SET native = set_byte(native, 0, get_byte(native, 0) # 1) WHERE seq = 3 AND ` +
			`cid = $1`,
		"kind":     `UPDATE messages SET kind = 'reminder' WHERE seq = 3 AND cid = $1`,
		"role":     `UPDATE messages SET role = 'user' WHERE seq = 4 AND cid = $1`,
		"moved":    `UPDATE messages SET seq = 100 WHERE seq = 3 AND cid = $1`,
		"gone":     `DELETE FROM messages WHERE seq = 3 AND cid = $1`,
		"chain":    `UPDATE messages SET chain = sha256(chain) WHERE seq = 3 AND cid = $1`,
		"at end":   `DELETE FROM messages WHERE seq = 6 AND cid = $1`,
		"the head": `UPDATE conversations SET head_chain = sha256(head_chain) WHERE cid = $1`,
	} {
		ref := newConversation(t, s, name)
		appendTurns(t, s, ref, 3)
		tx, err := db.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var cid int64
		if err := tx.QueryRow(t.Context(), `SELECT cid FROM conversations WHERE id = $1`, name).Scan(&cid); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `ALTER TABLE messages DISABLE TRIGGER USER`); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), sql, cid); err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), `ALTER TABLE messages ENABLE TRIGGER USER`); err != nil {
			t.Fatal(err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		want := "message 3"
		switch name {
		case "role":
			want = "message 4"
		case "at end", "the head":
			want = "message 6"
		}
		for _, upTo := range []int64{0, 6} {
			if _, err := s.Evidence.CheckChain(t.Context(), ref, upTo); !errors.Is(err, store.ErrTampered) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want %s", name, err, want)
			}
		}
	}
}

// Messages that no JSON library would reproduce are returned byte for byte.
func TestLossless(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	natives := map[string]string{
		"nul escape":       `{"role":"user","content":"a\u0000b"}`,
		"nul byte":         "{\"role\":\"user\",\"content\":\"a\x00b\"}",
		"lone surrogate":   `{"role":"user","content":"\ud800 and \udfff"}`,
		"surrogate pair":   `{"role":"user","content":"\ud83d\ude00😀"}`,
		"big integer":      `{"role":"user","content":"x","n":9007199254740993}`,
		"float":            `{"role":"user","content":"x","n":1.10e+02,"m":-0.0}`,
		"key order":        `{"z":1,"a":2,"role":"user","content":"x","m":3}`,
		"key twice":        `{"role":"user","content":"x","role":"user"}`,
		"less than":        `{"role":"user","content":"<a href=\"x\">&\u003c</a>"}`,
		"spacing":          "{ \"role\" :\t\"user\",\n  \"content\": \"x\"  }\r\n",
		"argument spacing": `{"role":"assistant","tool_calls":[{"function":{"arguments":"{ \"a\" :1.0 }"}}]}`,
		"invalid utf-8":    "{\"role\":\"user\",\"content\":\"\xff\xfe\xc3\x28\"}",
		"byte order mark":  "\uFEFF{\"role\":\"user\",\"content\":\"x\"}",
		"separators":       "{\"role\":\"user\",\"content\":\"\u2028\u2029\"}",
		"no json":          "not JSON at all",
		"three megabytes":  `{"role":"user","content":"` + strings.Repeat("long \u0000 line ", 250_000) + `"}`,
	}
	for name, native := range natives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			raw := json.RawMessage(native)
			c, _, err := s.Conversations.Create(t.Context(), store.DefaultTenant, conversations.NewConversation{
				Format: "openai", System: raw, Tools: raw, Envelope: raw, Settings: raw, Metadata: raw,
			})
			if err != nil {
				t.Fatal(err)
			}
			c, err = s.Conversations.Get(t.Context(), c.Ref)
			if err != nil {
				t.Fatal(err)
			}
			for field, got := range map[string]json.RawMessage{
				"system": c.System, "tools": c.Tools,
				"envelope": c.Envelope, "settings": c.Settings, "metadata": c.Metadata,
			} {
				if !bytes.Equal(got, raw) {
					t.Errorf("%s came back as %.80q", field, got)
				}
			}
			m := conversations.NewMessage{Role: pipeline.RoleUser, Native: raw}
			for _, batch := range [][]conversations.NewMessage{{m}, many(m, 65)} { // both ways of writing
				if _, err := s.Changes.Append(t.Context(), c.Ref,
					batch[:min(len(batch), max(1, 20_000_000/len(native)))],
					changes.AppendOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			for got, err := range s.Messages.Walk(t.Context(), c.Ref, 0, 0) {
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got.Native, raw) {
					t.Fatalf("message %d came back as %.80q", got.Seq, got.Native)
				}
			}
			if _, err := s.Evidence.CheckChain(t.Context(), c.Ref, 0); err != nil {
				t.Error(err)
			}
			a, err := s.Artifacts.Put(t.Context(), c.Ref, "prompt", raw)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Artifacts.Get(t.Context(), store.DefaultTenant, a.SHA256); err != nil ||
				!bytes.Equal(got, raw) || a.Size != int64(len(raw)) {
				t.Errorf("artifact came back as %.80q, %v", got, err)
			}
			run, _, err := s.Runs.Request(t.Context(), c.Ref,
				runs.Request{Kind: "manual", Focus: native, Trigger: json.RawMessage(`{"a":"\u0000\ud800<"}`)})
			if err != nil || run.Focus != native {
				t.Errorf("focus came back as %.80q, %v", run.Focus, err)
			}
		})
	}
}

func many(m conversations.NewMessage, n int) []conversations.NewMessage {
	list := make([]conversations.NewMessage, n)
	for i := range list {
		list[i] = m
	}
	return list
}

// Any bytes in any batches are returned unchanged, with a valid chain.
func TestAppendProperties(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	rapid.Check(t, func(rt *rapid.T) {
		c, _, err := s.Conversations.Create(t.Context(), store.DefaultTenant,
			conversations.NewConversation{Format: "openai"})
		if err != nil {
			rt.Fatal(err)
		}
		var want []conversations.NewMessage
		batches := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) conversations.NewMessage {
			role := rapid.SampledFrom([]pipeline.Role{
				pipeline.RoleSystem, pipeline.RoleUser, pipeline.RoleAssistant,
				pipeline.RoleTool,
			}).Draw(rt, "role")
			return conversations.NewMessage{
				Role: role, Genuine: rapid.Bool().Draw(rt, "genuine"),
				Native: rapid.SliceOfN(rapid.Byte(), 1, 60).Draw(rt, "native"),
				Tokens: rapid.IntRange(0, 1000).Draw(rt, "tokens"), Chars: rapid.IntRange(0, 1000).Draw(rt, "chars"),
			}
		}), 0, 80), 1, 3).Draw(rt, "batches")
		for _, batch := range batches {
			if _, err := s.Changes.Append(t.Context(), c.Ref, batch, changes.AppendOptions{}); err != nil {
				rt.Fatal(err)
			}
			want = append(want, batch...)
		}
		var got []conversations.NewMessage
		for m, err := range s.Messages.Walk(t.Context(), c.Ref, 1, 0) {
			if err != nil {
				rt.Fatal(err)
			}
			got = append(got, conversations.NewMessage{
				Role: m.Role, Genuine: m.Genuine, Native: m.Native, Tokens: m.Tokens,
				Chars: m.Chars,
			})
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
		if _, err := s.Evidence.CheckChain(t.Context(), c.Ref, int64(len(want))); err != nil {
			rt.Fatal(err)
		}
	})
}

func TestAppendStream(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	stream := func(n, fail int) iter.Seq2[conversations.NewMessage, error] {
		return func(yield func(conversations.NewMessage, error) bool) {
			for i := range n {
				if i == fail {
					yield(conversations.NewMessage{}, errors.New("line 7 is broken"))
					return
				}
				if !yield(message(pipeline.RoleUser, fmt.Sprint("m", i)), nil) {
					return
				}
			}
		}
	}
	ref := newConversation(t, s, "c")
	res, err := s.Changes.AppendStream(t.Context(), ref, stream(2500, -1))
	if err != nil || res.FirstSeq != 1 || res.LastSeq != 2500 || res.Conversation.HeadSeq != 2500 {
		t.Fatalf("%d to %d, head %d, %v", res.FirstSeq, res.LastSeq, res.Conversation.HeadSeq, err)
	}
	if _, err := s.Evidence.CheckChain(t.Context(), ref, 2500); err != nil {
		t.Error(err)
	}
	var seen int64
	for m, err := range s.Messages.Walk(t.Context(), ref, 700, 1900) { // over several pages
		if err != nil {
			t.Fatal(err)
		}
		if m.Seq != 700+seen {
			t.Fatalf("message %d, want %d", m.Seq, 700+seen)
		}
		seen++
	}
	if seen != 1201 {
		t.Errorf("%d messages", seen)
	}
	for range s.Messages.Walk(t.Context(), ref, 1, 0) {
		break // a reader may stop early
	}
	if _, err := s.Changes.AppendStream(t.Context(), newConversation(t, s, "broken"), stream(100, 50)); err == nil ||
		err.Error() != "line 7 is broken" {
		t.Errorf("error %v", err)
	}
	if res, err := s.Changes.AppendStream(t.Context(), newConversation(t, s, "empty"), stream(0, -1)); err != nil ||
		res.FirstSeq != 0 {
		t.Errorf("%+v, %v", res, err)
	}
}

// A page of large messages is limited by its size, not by the number of messages.
func TestMessagesOfAnySize(t *testing.T) {
	t.Parallel()
	s, url := newStore(t)
	ref := newConversation(t, s, "c")
	for i := range 12 {
		m := message(pipeline.RoleTool, "x")
		m.Native = bytes.Repeat([]byte{byte(i)}, 2<<20)
		if _, err := s.Changes.Append(t.Context(), ref, []conversations.NewMessage{m},
			changes.AppendOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var next int64 = 1
	for m, err := range s.Messages.Walk(t.Context(), ref, 0, 0) {
		if err != nil || m.Seq != next || len(m.Native) != 2<<20 || m.Native[9] != byte(next-1) {
			t.Fatalf("message %d of %d bytes, %v", m.Seq, len(m.Native), err)
		}
		next++
	}
	if next != 13 {
		t.Errorf("ended at %d", next)
	}
	var compression string
	err := raw(t, url).QueryRow(t.Context(),
		`SELECT DISTINCT pg_column_compression(native) FROM messages`).Scan(&compression)
	if err != nil || compression != "lz4" {
		t.Errorf("compressed by %q, %v", compression, err)
	}
}

func TestMessagesAt(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 5)
	list, err := s.Messages.At(t.Context(), ref, []int64{7, 2, 2, 9})
	if err != nil || len(list) != 3 || list[0].Seq != 2 || list[1].Seq != 7 || list[2].Seq != 9 {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := s.Messages.At(t.Context(), ref, nil); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := s.Messages.At(t.Context(), ref, []int64{2, 11}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	ref := newConversation(t, s, "c")
	appendTurns(t, s, ref, 3)
	usage := func() conversations.Usage {
		t.Helper()
		c, err := s.Conversations.Get(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		return c.Usage
	}
	report := func(r changes.UsageReport) {
		t.Helper()
		if _, err := s.Changes.RecordUsage(t.Context(), ref, r); err != nil {
			t.Fatal(err)
		}
	}
	if u := usage(); u != (conversations.Usage{}) {
		t.Fatalf("%+v before any figure", u)
	}
	report(changes.UsageReport{Tokens: 0})
	if u := usage(); u != (conversations.Usage{}) {
		t.Fatalf("%+v: zero is no figure", u)
	}
	report(changes.UsageReport{Tokens: 1200, Estimate: 1000, CoversSeq: 4})
	want := conversations.Usage{Tokens: 1200, Estimate: 1000, CoversSeq: 4, Calibration: 1.2}
	if u := usage(); u != want {
		t.Fatalf("%+v, want %+v", u, want)
	}
	report(changes.UsageReport{Tokens: 10, CoversSeq: 2}) // a late one of an earlier request
	if u := usage(); u != want {
		t.Fatalf("%+v, want %+v", u, want)
	}
	appendTurns(t, s, ref, 1) // messages alone do not touch it
	if u := usage(); u != want {
		t.Fatalf("%+v, want %+v", u, want)
	}

	began := int64(0)
	compact(t, s, ref, 4, "SUM")
	want.Stale = true
	if u := usage(); u != want {
		t.Fatalf("%+v, want %+v", u, want)
	}
	appendTurns(t, s, ref, 1)
	report(changes.UsageReport{Tokens: 5000, Epoch: &began}) // its request began before the marker
	if u := usage(); u != want {
		t.Fatalf("%+v, want %+v", u, want)
	}
	res, err := s.Changes.Append(t.Context(), ref, []conversations.NewMessage{message(pipeline.RoleAssistant, "a")},
		changes.AppendOptions{Usage: &changes.UsageReport{Tokens: 300}})
	if err != nil {
		t.Fatal(err)
	}
	want = conversations.Usage{Tokens: 300, CoversSeq: res.LastSeq, Calibration: 1.2}
	if u := usage(); u != want || res.Conversation.Usage != want {
		t.Fatalf("%+v, the append said %+v, want %+v", u, res.Conversation.Usage, want)
	}
	if _, err := s.Markers.Undo(t.Context(), ref, ""); err != nil {
		t.Fatal(err)
	}
	if u := usage(); !u.Stale {
		t.Errorf("%+v after an undo", u)
	}
}
