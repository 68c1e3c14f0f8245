package api

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/conversations"
)

// natives are messages whose bytes say more than their JSON value.
var natives = []string{
	`{"role":"user","content":"\u0000 nul, \ud800 half a pair, \ud83d\ude00 a whole one, \/ \u003c < > &"}`,
	`{ "content" : [ {"text":"order and spaces","type":"text"} ] ,
	"role":"assistant"  }`,
	`{"role":"user","content":"more","big":9007199254740993,"exact":1.10,"exp":1E+2,"neg":-0}`,
	`{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"run","input":{"z":1,"a":"2","z2":[ ],` +
		`"args":"{ \"spaced\" :  1 }"}}]}`,
	`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"<b>\u2028é ä</b>"}],` +
		`"unknown_key":{"kept":true}}`,
	`{"role":"assistant","content":"ok","content":"ok, twice"}`,
	`{"role":"user","content":"last"}`,
}

const (
	rawSystem = `[ {"type":"text","text":"system <\u0000>"} ]`
	rawTools  = `[{"name":"run", "input_schema":{"type":"object","properties":{"b":{},"a":{}}},"n":9007199254740993}]`
)

// What an agent sends comes back byte for byte, by every way.
func TestMessagesAreKeptByteForByte(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", `"system": `+rawSystem+` ,"tools":`+rawTools+`,"metadata":{ "k" : "\u003c" }`)
	b.send("POST", c+"/messages", "{\n \"messages\" : [ "+strings.Join(natives[:4], " ,\n")+" ]\n}").is(200)
	b.send("POST", c+"/sync", `{"messages":`+list(natives[:5]...)+`}`).is(200)
	reply := b.send("POST", c+"/replies", "").is(201).get("reply")
	b.send("POST", c+"/replies/"+reply+"/end", `{"messages":[`+natives[5]+`]}`).is(200)
	b.add(c, natives[6])

	var transcript struct {
		Messages []struct{ Native json.RawMessage }
	}
	b.send("GET", c+"/messages", "").is(200).into(&transcript)
	var got []string
	for _, m := range transcript.Messages {
		got = append(got, string(m.Native))
	}
	if diff := cmp.Diff(natives, got); diff != "" {
		t.Errorf("the transcript: %s", diff)
	}

	for name, r := range map[string]reply_{
		"context": {b.send("GET", c+"/context", "").is(200), ""},
		"reply":   {b.send("POST", c+"/replies", "").is(201), "context"},
	} {
		body := r.body
		if r.under != "" {
			var outer map[string]json.RawMessage
			r.into(&outer)
			body = outer[r.under]
		}
		var context struct {
			System, Tools json.RawMessage
			Messages      []json.RawMessage
		}
		if err := json.Unmarshal(body, &context); err != nil {
			t.Fatal(err)
		}
		if string(context.System) != rawSystem || string(context.Tools) != rawTools {
			t.Errorf("%s: system %s, tools %s", name, context.System, context.Tools)
		}
		for i, m := range context.Messages {
			if string(m) != natives[i] {
				t.Errorf("%s: message %d\n got %s\nwant %s", name, i, m, natives[i])
			}
		}
	}
	if r := b.send("GET", c, "").is(200); !bytes.Contains(r.body, []byte(`"system":`+rawSystem)) ||
		!bytes.Contains(r.body, []byte(`{ "k" : "\u003c" }`)) {
		t.Errorf("the conversation is %s", r.body)
	}
}

type reply_ struct {
	reply
	under string
}

// Any JSON that is a message, in any spelling.
func TestAnySpellingIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	seen := 0
	rapid.Check(t, func(rt *rapid.T) {
		space := rapid.SampledFrom([]string{"", " ", "\n", "\t ", "\r\n"})
		text := rapid.SampledFrom([]string{
			`a`, `\u0041`, `\u0000`, `\ud800`, `\uD83D\uDE00`, `<`, `\/`, `é`, `日本`,
			`\u2028`, `\"`, `\\`,
		})
		var content strings.Builder
		for range rapid.IntRange(1, 8).Draw(rt, "n") {
			content.WriteString(text.Draw(rt, "text"))
		}
		extra := rapid.SampledFrom([]string{
			``, `,"n":1e400`, `,"n":0.10`, `,"o":{"b":1,"a":2}`, `,"x":[ ]`,
			`,"d":1,"d":2`,
		}).Draw(rt, "extra")
		native := "{" + space.Draw(rt, "s1") + `"role"` + space.Draw(rt, "s2") + `:"user"` + "," +
			space.Draw(rt, "s3") + `"content":"` + content.String() + `"` + extra + "}"
		r := b.send("POST", c+"/messages", `{"messages":[`+space.Draw(rt, "s4")+native+`]}`)
		if r.status != http.StatusOK {
			rt.Fatalf("%s: status %d: %s", native, r.status, r.body)
		}
		var page struct {
			Messages []struct{ Native json.RawMessage }
		}
		b.send("GET", fmt.Sprintf("%s/messages?after=%d", c, seen), "").is(200).into(&page)
		seen++
		if len(page.Messages) != 1 || string(page.Messages[0].Native) != native {
			rt.Fatalf("\nsent %s\n got %+v", native, page.Messages)
		}
	})
}

// A message that is several lines of a file is no JSON value: it is given as text.
func TestLinesAreGivenAsText(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	lines := `{"type":"assistant","uuid":"1"}` + "\n" + `{"type":"assistant","uuid":"2"}`
	c, _, err := b.Store.Conversations.Create(t.Context(), store.DefaultTenant,
		conversations.NewConversation{ID: "lines", Format: "claude-code", Vendor: "anthropic", Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Store.Changes.Append(t.Context(), c.Ref,
		[]conversations.NewMessage{{Role: "assistant", Native: []byte(lines)}},
		changes.AppendOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := b.send("GET", "/v1/conversations/lines/messages", "").is(200).get("messages", 0, "native"); got != lines {
		t.Errorf("got %q", got)
	}
}

// A page of large messages ends early and says so.
func TestAPageOfLargeMessagesIsShorter(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	big := `{"role":"user","content":"` + strings.Repeat("x", service.MaxPageBytes/3) + `"}`
	for range 5 {
		b.add(c, big)
	}
	after, read := "0", 0
	for more := "true"; more == "true"; {
		r := b.send("GET", c+"/messages?after="+after, "").is(200)
		var page struct{ Messages []struct{ Seq json.Number } }
		r.into(&page)
		if len(page.Messages) == 0 || len(r.body) > service.MaxPageBytes+1<<20 {
			t.Fatalf("%d messages, %d bytes", len(page.Messages), len(r.body))
		}
		read += len(page.Messages)
		after, more = page.Messages[len(page.Messages)-1].Seq.String(), r.get("more")
	}
	if read != 5 {
		t.Errorf("read %d messages", read)
	}
}
