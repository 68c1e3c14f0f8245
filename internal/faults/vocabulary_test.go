package faults

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// fault is a case with its kind. A JSON key beyond these fields is an error: a case with a word that the harness does
// not know would be played in part only.
type fault struct {
	Kind     string            `json:"-"`
	Name     string            `json:"name"`
	Settings settings          `json:"settings"`
	Messages []json.RawMessage `json:"messages"`
	// MessageVariants are lists of messages of which each play of the case uses one.
	MessageVariants [][]json.RawMessage `json:"message_variants"`
	// Answers are what the models of the case answer, in order; SecondAnswers those of a summarizer of its own.
	Answers       []map[string]json.RawMessage `json:"answers"`
	SecondAnswers []map[string]json.RawMessage `json:"second_answers"`
	// AnswerVariants are answers of which each play of the case uses one.
	AnswerVariants []map[string]json.RawMessage `json:"answer_variants"`
}

// variants is the number of plays that differ in a variant, at least 1.
func (f fault) variants() int { return max(1, len(f.MessageVariants), len(f.AnswerVariants)) }

// settings are the settings of the conversation, of its model and of the summarizer.
type settings struct {
	Window              int      `json:"window"`
	MaxOutput           int      `json:"max_output"`
	Auto                *bool    `json:"auto"`
	BackgroundStart     float64  `json:"background_start"`
	SummarizerWindow    int      `json:"summarizer_window"`
	SummarizerMaxOutput int      `json:"summarizer_max_output"`
	SummaryMaxTokens    int      `json:"summary_max_tokens"`
	BreakerFailures     int      `json:"breaker_failures"`
	Redact              bool     `json:"redact"`
	ToolDropThreshold   *float64 `json:"tool_drop_threshold"`
	Mode                string   `json:"mode"`
	ForceExternal       bool     `json:"force_external"`
}

// step is a message or an operation.
type step struct {
	Op string `json:"op"`
	// Of a message: the JSON that is sent, and its metadata.
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
	Error              *reported         `json:"error"`
	Message            json.RawMessage   `json:"message"`
	IDs                []string          `json:"ids"`
	ExpectedVersion    *int64            `json:"expected_version"`
	ModePrompt         *string           `json:"mode_prompt"`
	Todo               *string           `json:"todo"`
	Plan               *string           `json:"plan"`
	Skills             []string          `json:"skills"`
	Constraints        []string          `json:"constraints"`
	Window             int               `json:"window"`
	SummarizerWindow   int               `json:"summarizer_window"`
	Summarizer         string            `json:"summarizer"`
	Limit              int               `json:"limit"`
}

type metadata struct {
	Synthetic bool `json:"synthetic"`
}

// reported is the error of a model call of the agent.
type reported struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// statuses is one expected HTTP status or a list of them.
type statuses []int

func (s *statuses) UnmarshalJSON(b []byte) error {
	var one int
	if json.Unmarshal(b, &one) == nil {
		*s = statuses{one}
		return nil
	}
	return json.Unmarshal(b, (*[]int)(s))
}

// words are the operations, and the keys that each accepts.
var words = map[string][]string{
	"append":                 {"expected_version", "message", "expect_status"},
	"append_again":           {"ids"},
	"cancel":                 nil,
	"change_model":           {"window", "summarizer_window", "summarizer", "limit"},
	"compact":                {"expect_status", "client_timeout_ms", "idempotency_key"},
	"compact_full":           nil,
	"end_reply":              {"message"},
	"open_reply":             nil,
	"parallel":               {"ops"},
	"parallel_conversations": {"count", "tenants", "messages"},
	"read_state":             nil,
	"repeat":                 {"times", "messages", "restart_worker_after"},
	"report_error":           {"error"},
	"request_compaction":     nil,
	"set_state":              {"mode_prompt", "todo", "plan", "skills", "constraints"},
	"start_worker":           nil,
	"stop_worker":            nil,
	"undo":                   {"expect_status"},
	"use_variant":            nil,
	"wait_compaction":        nil,
	"wait_idle":              nil,
}

// The keys of a message: nativeKeys are sent as they are, besideKeys become metadata of the API's request.
var (
	nativeKeys = []string{"role", "content", "tool_calls", "tool_call_id"}
	besideKeys = []string{"id", "usage", "metadata", "conversation", "parent"}
)

// decodeFault reads one case and refuses unknown words.
func decodeFault(raw []byte) (fault, error) {
	var f fault
	expanded, err := expand(raw)
	if err != nil {
		return f, err
	}
	if err := strict(expanded, &f); err != nil {
		return f, err
	}
	if err := f.check(); err != nil {
		return f, fmt.Errorf("case %q: %w", f.Name, err)
	}
	return f, nil
}

// check reads all messages and answers, so that a bad case fails before it is played.
func (f fault) check() error {
	if f.Name == "" || f.Settings.Window <= 0 {
		return errors.New("a case needs a name and a window")
	}
	for _, list := range append([][]json.RawMessage{f.Messages}, f.MessageVariants...) {
		if _, err := stepsOf(list); err != nil {
			return err
		}
	}
	for _, list := range [][]map[string]json.RawMessage{f.Answers, f.SecondAnswers, f.AnswerVariants} {
		for _, a := range list {
			answer, err := answerOf(a)
			if err != nil {
				return err
			}
			if answer.useVariant && len(f.AnswerVariants) == 0 {
				return errors.New("an answer is to be a variant, but the case has no answer_variants")
			}
		}
	}
	return nil
}

// stepsOf reads a list of messages and operations, including nested ones.
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
			return step{}, fmt.Errorf("unknown key %q in %s", f.key, orText(op.Op, "a message"))
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
			return s, fmt.Errorf("read a message: %w", err)
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

// indexed replaces a mark such as {i} by a number.
func indexed(list []json.RawMessage, mark string, n int) []json.RawMessage {
	out := make([]json.RawMessage, len(list))
	for i, raw := range list {
		out[i] = bytes.ReplaceAll(raw, []byte(mark), fmt.Append(nil, n))
	}
	return out
}

// errorBody is the body of the vendor's answer, nil for none.
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
