package faults

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// fault is a line of the collection. What its JSON holds beyond these fields is an error: a word that the harness does
// not know would be half of a case.
type fault struct {
	ID       string            `json:"id"`
	Kind     string            `json:"kind"`
	Title    string            `json:"title"`
	Hard     bool              `json:"hard"`
	Messages []json.RawMessage `json:"messages"`
	// Variants are lists of messages, or words for where a process dies.
	Variants []json.RawMessage `json:"variants"`
	Config   settings          `json:"config"`
	// Expect is prose, for people: the checks say it again in Go.
	Expect string `json:"expect"`
}

// settings is a case's configuration in the collection's neutral words.
type settings struct {
	ContextWindow     int                          `json:"context_window"`
	MaxOutputTokens   int                          `json:"max_output_tokens"`
	Auto              *bool                        `json:"auto"`
	BackgroundStart   float64                      `json:"background_start_fraction"`
	SummarizerWindow  int                          `json:"summarizer_window"`
	ModelMaxOutput    int                          `json:"model_max_output"`
	SummaryMaxTokens  int                          `json:"summary_max_tokens"`
	MaxAttempts       int                          `json:"max_attempts"`
	BreakerLimit      int                          `json:"breaker_limit"`
	StrictAlternation bool                         `json:"strict_alternation"`
	AllowOpenCalls    bool                         `json:"allow_open_calls"`
	RedactSecrets     bool                         `json:"redact_secrets"`
	ToolDropThreshold *float64                     `json:"tool_drop_threshold"`
	CompactionMode    string                       `json:"compaction_mode"`
	ForceExternal     bool                         `json:"force_external"`
	LLM               []map[string]json.RawMessage `json:"llm"`
	ExternalLLM       []map[string]json.RawMessage `json:"external_llm"`
	Variants          []map[string]json.RawMessage `json:"variants"`
	Action            []string                     `json:"action"`
}

// step is a message, or an operation in the place of one.
type step struct {
	Op string `json:"op"`
	// Of a message: what is sent, and what stands beside it.
	native       json.RawMessage
	ID           string          `json:"id"`
	Usage        json.RawMessage `json:"usage"`
	Metadata     metadata        `json:"metadata"`
	Conversation string          `json:"conversation"`
	Parent       string          `json:"parent"`

	Times              int               `json:"times"`
	Messages           []json.RawMessage `json:"messages"`
	RestartWorkerAfter int               `json:"restart_worker_after"`
	Ops                []json.RawMessage `json:"ops"`
	Count              int               `json:"count"`
	Tenants            int               `json:"tenants"`
	ExpectStatus       statuses          `json:"expect_status"`
	ClientTimeoutMS    int               `json:"client_timeout_ms"`
	IdempotencyKey     string            `json:"idempotency_key"`
	CrashAt            json.RawMessage   `json:"crash_at"`
	Error              *reported         `json:"error"`
	Message            json.RawMessage   `json:"message"`
	IDs                []string          `json:"ids"`
	ExpectedVersion    *int64            `json:"expected_version"`
	ModePrompt         *string           `json:"mode_prompt"`
	Todo               *string           `json:"todo"`
	Plan               *string           `json:"plan"`
	Skills             []string          `json:"skills"`
	Constraints        []string          `json:"constraints"`
	ContextWindow      int               `json:"context_window"`
	SummarizerWindow   int               `json:"summarizer_window"`
	SummarizerModel    string            `json:"summarizer_model"`
	TokenLimit         int               `json:"token_limit"`
}

type metadata struct {
	Synthetic bool `json:"synthetic"`
}

// reported is an error that the agent's own model call ended in.
type reported struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// statuses is one HTTP status, or several that are right.
type statuses []int

func (s *statuses) UnmarshalJSON(b []byte) error {
	var one int
	if json.Unmarshal(b, &one) == nil {
		*s = statuses{one}
		return nil
	}
	return json.Unmarshal(b, (*[]int)(s))
}

// words are the keys that each operation takes.
var words = map[string][]string{
	"compact": {"expect_status", "client_timeout_ms", "idempotency_key"}, "compact_force": nil,
	"compact_async": {"crash_at"}, "cancel": nil, "undo": {"expect_status"}, "state": nil, "wait_idle": nil,
	"wait_compaction": nil, "set_state": {"mode_prompt", "todo", "plan", "skills", "constraints"},
	"set_config": {"context_window", "summarizer_window", "summarizer_model", "token_limit"}, "report_error": {"error"},
	"begin_turn": nil, "end_turn": {"message"}, "parallel": {"ops"},
	"parallel_conversations": {"count", "tenants", "messages"}, "repeat": {"times", "messages", "restart_worker_after"},
	"kill_worker": nil, "start_worker": nil, "stop_worker_gracefully": nil, "append_again": {"ids"},
	"append": {"expected_version", "message", "expect_status"}, "use_variant": nil,
}

// What a message may hold: the first are sent as they are, the second stand beside it in the API.
var (
	nativeKeys = []string{"role", "content", "tool_calls", "tool_call_id"}
	besideKeys = []string{"id", "usage", "metadata", "conversation", "parent"}
)

// readFaults reads the collection.
func readFaults(path string) ([]fault, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []fault
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for n := 1; lines.Scan(); n++ {
		f, err := decodeFault(lines.Bytes())
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		all = append(all, f)
	}
	return all, lines.Err()
}

// decodeFault reads one line, and all of the words in it.
func decodeFault(line []byte) (fault, error) {
	var f fault
	expanded, err := expand(line)
	if err != nil {
		return f, err
	}
	if err := strict(expanded, &f); err != nil {
		return f, err
	}
	if err := f.check(); err != nil {
		return f, fmt.Errorf("%s: %w", f.ID, err)
	}
	return f, nil
}

// check looks at every word, before anything is played.
func (f fault) check() error {
	if f.ID == "" || f.Kind == "" || f.Expect == "" || f.Config.ContextWindow <= 0 {
		return errors.New("a case has an id, a kind, what is expected and a context window")
	}
	if _, err := stepsOf(f.Messages); err != nil {
		return err
	}
	for _, v := range f.Variants {
		if v[0] != '[' {
			continue // where a process dies
		}
		var list []json.RawMessage
		if err := json.Unmarshal(v, &list); err != nil {
			return err
		}
		if _, err := stepsOf(list); err != nil {
			return err
		}
	}
	for _, action := range f.Config.Action {
		if _, known := words[action]; !known {
			return fmt.Errorf("unknown action %q", action)
		}
	}
	for _, list := range [][]map[string]json.RawMessage{f.Config.LLM, f.Config.ExternalLLM, f.Config.Variants} {
		for _, a := range list {
			answer, err := answerOf(a)
			if err != nil {
				return err
			}
			if answer.useVariant && len(f.Config.Variants) == 0 {
				return errors.New("an answer of the script is a variant, and there are none")
			}
		}
	}
	return nil
}

// stepsOf reads a list of messages and operations, those inside of others too.
func stepsOf(list []json.RawMessage) ([]step, error) {
	out := make([]step, 0, len(list))
	for i, raw := range list {
		s, err := stepOf(raw)
		if err != nil {
			return nil, fmt.Errorf("step %d: %w", i, err)
		}
		for _, inner := range [][]json.RawMessage{s.Messages, s.Ops} {
			if _, err := stepsOf(inner); err != nil {
				return nil, fmt.Errorf("step %d: %w", i, err)
			}
		}
		out = append(out, s)
	}
	return out, nil
}

func stepOf(raw json.RawMessage) (step, error) {
	fields, err := fieldsOf(raw)
	if err != nil {
		return step{}, err
	}
	var op struct{ Op string }
	if err := json.Unmarshal(raw, &op); err != nil {
		return step{}, err
	}
	beside := besideKeys
	if op.Op != "" {
		known := false
		if beside, known = words[op.Op]; !known {
			return step{}, fmt.Errorf("unknown operation %q", op.Op)
		}
	}
	var native, ours []field
	for _, f := range fields {
		switch {
		case op.Op == "" && slices.Contains(nativeKeys, f.key):
			native = append(native, f)
		case slices.Contains(beside, f.key), f.key == "op":
			ours = append(ours, f)
		default:
			return step{}, fmt.Errorf("%q is not known of %s", f.key, orText(op.Op, "a message"))
		}
	}
	var s step
	if err := strict(join(ours), &s); err != nil {
		return s, err
	}
	if op.Op == "" {
		s.native = join(native)
	}
	for _, m := range []json.RawMessage{s.native, s.Message} {
		if m == nil {
			continue
		}
		if err := json.Unmarshal(m, new(chatMessage)); err != nil {
			return s, fmt.Errorf("a message: %w", err)
		}
	}
	return s, nil
}

func orText(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// strict decodes JSON that holds nothing unknown.
func strict(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows it")
	}
	return nil
}

// field is a member of a JSON object, which keeps its place.
type field struct {
	key   string
	value json.RawMessage
}

func fieldsOf(raw []byte) ([]field, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	start, err := d.Token()
	if err != nil {
		return nil, err
	}
	if start != json.Delim('{') {
		return nil, fmt.Errorf("an object is expected, not %.40s", raw)
	}
	var out []field
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		f := field{key: key.(string)} // the decoder takes nothing else for a key
		if err := d.Decode(&f.value); err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	_, err = d.Token()
	return out, err
}

func join(fields []field) json.RawMessage {
	parts := make([]string, len(fields))
	for i, f := range fields {
		parts[i] = quote(f.key) + ":" + string(f.value)
	}
	return json.RawMessage("{" + strings.Join(parts, ",") + "}")
}

// quote writes a JSON string as the vendors do: nothing is escaped that need not be.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil {
		panic(err) // a string
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const (
	// maxDepth is more than any case nests.
	maxDepth = 50
	// maxText bounds a string that a case writes as a repetition, in bytes.
	maxText = 64 << 20
)

// expand writes out the strings that the collection gives as repetitions. Everything else keeps its order and spelling.
func expand(raw []byte) ([]byte, error) {
	if !json.Valid(raw) {
		return nil, errors.New("it is no JSON")
	}
	return expandValue(raw, 0)
}

func expandValue(raw json.RawMessage, depth int) (json.RawMessage, error) {
	raw = bytes.TrimSpace(raw)
	if depth > maxDepth {
		return nil, errors.New("it is nested too deep")
	}
	switch raw[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		for i, item := range list {
			var err error
			if list[i], err = expandValue(item, depth+1); err != nil {
				return nil, err
			}
		}
		return append(append([]byte{'['}, bytes.Join(rawBytes(list), []byte{','})...), ']'), nil
	case '{':
		fields, err := fieldsOf(raw)
		if err != nil {
			return nil, err
		}
		if text, ok, err := repetition(fields, raw); ok || err != nil {
			return json.RawMessage(text), err
		}
		for i := range fields {
			if fields[i].value, err = expandValue(fields[i].value, depth+1); err != nil {
				return nil, err
			}
		}
		return join(fields), nil
	}
	return raw, nil
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, item := range list {
		out[i] = item
	}
	return out
}

// repetition reads {"prefix","repeat","times","suffix"} as the string that it stands for; ok is false for any other
// object.
func repetition(fields []field, raw []byte) (string, bool, error) {
	if !slices.ContainsFunc(fields, func(f field) bool { return f.key == "repeat" }) {
		return "", false, nil
	}
	var r struct {
		Prefix, Repeat, Suffix string
		Times                  int
	}
	if err := strict(raw, &r); err != nil {
		return "", false, fmt.Errorf("a repeated text: %w", err)
	}
	if r.Times < 0 || r.Times*len(r.Repeat) > maxText {
		return "", false, fmt.Errorf("a text of %d times %d bytes is not taken", r.Times, len(r.Repeat))
	}
	return quote(r.Prefix + strings.Repeat(r.Repeat, r.Times) + r.Suffix), true, nil
}

// indexed puts a number for {i}, or {c}, into a block.
func indexed(list []json.RawMessage, mark string, n int) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, raw := range list {
		out[i] = bytes.ReplaceAll(raw, []byte(mark), fmt.Append(nil, n))
	}
	return out
}

// errorBody is what the agent's vendor answered, nil when it had no body.
func (r reported) errorBody() json.RawMessage {
	if r.Message == "" && r.Code == "" && r.Type == "" {
		return nil
	}
	body, err := json.Marshal(map[string]any{"error": map[string]string{
		"message": orText(r.Message, r.Code), "type": orText(r.Type, "invalid_request_error"), "code": r.Code,
	}})
	if err != nil {
		panic(err) // strings
	}
	return body
}
