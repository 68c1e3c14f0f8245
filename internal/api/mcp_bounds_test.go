package api

import (
	"net/http"
	"strings"
	"testing"

	"precis/internal/contract"
	"precis/internal/service"
)

// Bad messages of an MCP client are answered with little, and a batch is refused.
func TestMCPIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{config: unlimited})
	c := b.create("c", "")
	long := strings.Repeat("x", 1<<20)
	call := func(tool, args string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":` + quote(tool) + `,"arguments":` +
			args + `}}`
	}
	const list = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	send := func(path, body string) reply {
		return b.send("POST", path, body, "Accept", "application/json, text/event-stream")
	}
	for _, path := range []string{"/mcp", c + "/mcp"} {
		send(path, "["+list+","+list+"]").fails(http.StatusUnprocessableEntity, service.CodeInvalid).names(t, "body")
		send(path, list+strings.Repeat(" ", contract.MaxMCPBody)).fails(413, service.CodeTooLarge)
		for name, body := range map[string]string{
			"id":     `{"jsonrpc":"2.0","id":"` + long + `","method":"tools/list"}`,
			"method": `{"jsonrpc":"2.0","id":1,"method":"` + long + `"}`,
			"key":    call("search_transcript", `{"`+long+`":1}`), "depth": call("search_transcript", `{"query":`+
				strings.Repeat("[", 1000)+strings.Repeat("]", 1000)+`}`), "open": `{"jsonrpc":`,
			"latin1": call("search_transcript", "{\"query\":\"\xe9\"}"),
		} {
			if r := send(path, body); r.status < 400 || r.status > 499 || len(r.body) > 4<<10 {
				t.Errorf("%s: status %d, %d bytes", name, r.status, len(r.body))
			}
		}
		for name, body := range map[string]string{
			"tool": call(long, `{}`), "query": call("search_transcript", `{"conversation":"c","query":"`+long+`"}`),
			"conversation": call("search_transcript", `{"query":"a","conversation":"`+long+`"}`),
			"cursor":       call("list_segments", `{"conversation":"c","cursor":"`+long+`"}`),
			"name":         call("read_segment", `{"conversation":"c","name":"`+long+`"}`),
			"note":         call("add_note", `{"conversation":"c","text":"`+long+`"}`),
			"type":         call("read_messages", `{"conversation":"c","from":"`+long+`"}`),
			"list":         call("read_messages", `{"conversation":"c","from":[`+strings.Repeat("0,", 1<<19)+`0]}`),
			"number":       call("read_messages", `{"conversation":"c","from":1`+strings.Repeat("0", 1<<20)+`}`),
			"arguments":    call("add_note", `"`+long+`"`),
			"keys":         call("add_note", `{`+strings.Repeat(`"some key":1,`, 1<<16)+`"a":1}`),
		} {
			if r := send(path, body); len(r.body) > 64<<10 || !strings.Contains(string(r.body), "rror") {
				t.Errorf("%s: status %d, %d bytes: %.200s", name, r.status, len(r.body), r.body)
			}
		}
	}
}
