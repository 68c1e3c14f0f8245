package fieldcases

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"precis/internal/cli"
)

// play is one case being played.
type play struct {
	*testing.T
	*stand
	c fieldCase
	// answers has the answers of the steps by their names.
	answers object
}

func (p *play) id() string { return "case-" + p.c.ID }

// run plays the case up to its assertions.
func (p *play) run() error {
	r := recipes{c: p.c}
	p.answers["let"] = r.value(map[string]any(p.c.Let))
	sent := r.list(p.c.Messages)
	p.answers["sent"] = sent
	defer func() { p.answers["model"] = p.vendorState(p.c) }()
	if p.c.Conversation != nil {
		if err := p.step(object{"do": "POST /v1/conversations", "as": "create", "body": p.create()}); err != nil {
			return err
		}
	}
	if len(sent) > 0 {
		body := object{"messages": sent}
		if p.c.Meta != nil {
			body["meta"] = p.c.Meta
		}
		refused := strings.HasPrefix(p.c.ID, "R22") // the append itself is the case
		if err := p.step(object{
			"do": "POST ./messages", "as": "append", "body": body, "refused": refused,
		}); err != nil {
			return err
		}
	}
	steps := p.c.Steps
	if p.c.Input != "" {
		flags := make([]any, len(p.c.Flags))
		for i, f := range p.c.Flags {
			flags[i] = f
		}
		steps = append([]any{
			object{"import": p.c.Input, "flags": flags},
			"GET ./context", "GET ./messages",
			object{"compact": p.c.Input, "flags": flags},
		}, steps...)
	}
	for _, s := range steps {
		o, ok := s.(object)
		if !ok {
			o = object{"do": s}
		}
		if err := p.step(o); err != nil {
			return err
		}
	}
	return nil
}

// create is the body that creates the conversation of the case.
func (p *play) create() object {
	vendor := "openai"
	switch p.c.Format {
	case "anthropic", "claude-code":
		vendor = "anthropic"
	case "google", "gemini-cli":
		vendor = "google"
	}
	body := object{"id": p.id(), "format": p.c.Format}
	m := object{"vendor": vendor, "name": "agent-1", "context_window": 200000}
	settings := object{"trigger": object{"auto": false}, "summarizers": []any{"openai/$MODEL"}}
	for k, v := range p.c.Conversation {
		switch given, _ := v.(object); k {
		case "model":
			for k, v := range given {
				m[k] = v
			}
		case "settings":
			settings = given
		default:
			body[k] = v
		}
	}
	body["model"], body["settings"] = m, settings
	return body
}

// step does one step and keeps its answer.
func (p *play) step(s object) error {
	text := func(key string) string { v, _ := s[key].(string); return v }
	refused, _ := s["refused"].(bool)
	switch {
	case s["wait"] != nil:
		seconds, err := strconv.ParseFloat(fmt.Sprint(s["wait"]), 64)
		time.Sleep(time.Duration(seconds * float64(time.Second))) // the case is about time, such as the end of a lease
		return err
	case s["idle"] != nil:
		return p.idle()
	case s["import"] != nil:
		return p.command(cmp.Or(text("as"), "import"), text("import"), refused, s["flags"], "import", "--id", p.id())
	case s["compact"] != nil:
		return p.command(cmp.Or(text("as"), "compact"), text("compact"), refused, s["flags"], "compact", "--full",
			"--summarizer", "digest", "--summary")
	}
	method, path, ok := strings.Cut(p.fill(text("do")), " ")
	if !ok {
		return fmt.Errorf("a step that does nothing: %v", s)
	}
	body := s["body"]
	if method == http.MethodPost && path == "./compactions" {
		all := object{"summarizer": "openai/$MODEL", "wait_seconds": 60}
		if given, ok := body.(object); ok {
			for k, v := range given {
				all[k] = v
			}
		}
		body = all
	}
	if body == nil && method == http.MethodPost {
		body = object{}
	}
	answer, err := p.call(method, path, body, text("key"))
	if err != nil {
		return err
	}
	p.answers[cmp.Or(text("as"), defaultName(method, path))] = answer
	if status := answer["status"].(int); status >= 400 && !refused {
		return fmt.Errorf("%s %s: %s", method, path, encode(answer))
	}
	return nil
}

func defaultName(method, path string) string {
	path, _, _ = strings.Cut(path, "?")
	last := path[strings.LastIndex(path, "/")+1:]
	switch {
	case method == http.MethodPatch:
		return "patch"
	case path == ".":
		return "conversation"
	case path == "/v1/conversations":
		return "create"
	case method == http.MethodPost && last == "messages":
		return "append"
	case last == "messages":
		return "rows"
	case last == "replies":
		return "reply"
	case last == "compactions":
		return "run"
	}
	return last // context, end, runs, sync
}

var reference = regexp.MustCompile(`\$\{([^}]+)\}`)

// fill replaces the values of earlier answers, the id and the model in a text.
func (p *play) fill(s string) string {
	s = reference.ReplaceAllStringFunc(s, func(m string) string {
		v, _ := at(p.answers, m[2:len(m)-1])
		return fmt.Sprint(v)
	})
	return strings.NewReplacer("$ID", p.id(), "$MODEL", model(p.c)).Replace(s)
}

// call sends a request of the API.
func (p *play) call(method, path string, body any, key string) (object, error) {
	rest, _ := strings.CutPrefix(path, ".")
	if rest != path {
		path = "/v1/conversations/" + p.id() + rest
	}
	if method == http.MethodGet && strings.HasSuffix(path, "/messages") {
		path += "?limit=1000"
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader([]byte(p.fill(string(encode((recipes{c: p.c}).value(body))))))
	}
	req, err := http.NewRequestWithContext(p.T.Context(), method, p.url+path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", p.id()+key)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	answer, ok := decode(b).(object)
	if !ok {
		answer = object{"body": string(b)}
	}
	answer["status"] = res.StatusCode
	return answer, err
}

// idle waits until no run is under way.
func (p *play) idle() error {
	for deadline := time.Now().Add(time.Minute); ; {
		runs, err := p.call(http.MethodGet, "./runs", nil, "")
		if err != nil {
			return err
		}
		if !bytes.Contains(encode(runs), []byte(`"outcome":"running"`)) &&
			!bytes.Contains(encode(runs), []byte(`"ended":null`)) {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("a run is still under way: %s", encode(runs))
		}
		time.Sleep(100 * time.Millisecond) // runs have no end that a request could wait for
	}
}

// command runs a command line on a file of the cases.
func (p *play) command(as, file string, refused bool, flags any, args ...string) error {
	args = append(args, "--config", p.config)
	list, _ := flags.([]any)
	for _, f := range list {
		args = append(args, p.fill(fmt.Sprint(f)))
	}
	var out, errors bytes.Buffer
	status := cli.Run(append(args, filepath.Join(p.dir, file)), strings.NewReader(""), &out, &errors)
	p.answers[as] = object{"status": status, "out": out.String(), "err": errors.String()}
	if status != 0 && !refused {
		return fmt.Errorf("precis %s exited with %d:\n%s", args[0], status, errors.String())
	}
	return nil
}

func encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // values of a case and of decoded JSON
	}
	return bytes.TrimSpace(b.Bytes())
}

func decode(b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}
