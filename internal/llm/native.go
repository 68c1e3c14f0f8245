package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"precis/pipeline"
)

// NativeForm is a way in which a vendor compacts by itself.
type NativeForm string

// The forms. Where each comes from stands in docs/vendors.md.
const (
	// NativeOnDemand is Anthropic's request for a summary and nothing else (beta compact-2026-09-04): one signed
	// block that goes first in later requests, in place of the messages that it stands for.
	NativeOnDemand NativeForm = "on_demand"
	// NativeEdit is Anthropic's compaction edit (beta compact-2026-01-12), told to pause when it has fired. It
	// takes no trigger below pipeline.MinAnthropicCompactionInputTokens.
	NativeEdit NativeForm = "edit"
	// NativeCompact is the endpoint /responses/compact of OpenAI and xAI: what comes back is opaque.
	NativeCompact NativeForm = "compact"
)

// Format is the format of the requests that the form is asked with, one of the Type constants.
func (f NativeForm) Format() string {
	switch f {
	case NativeOnDemand, NativeEdit:
		return TypeAnthropic
	case NativeCompact:
		return TypeOpenAIResponses
	}
	return ""
}

// Readable says whether a person, and any other model, can read what comes back.
func (f NativeForm) Readable() bool { return f == NativeOnDemand || f == NativeEdit }

// Beta is the beta header of requests that send what came back in this form, "" where none is needed.
func (f NativeForm) Beta() string {
	switch f {
	case NativeOnDemand:
		return string(anthropic.AnthropicBetaCompact2026_09_04)
	case NativeEdit:
		return string(anthropic.AnthropicBetaCompact2026_01_12)
	}
	return ""
}

// maxNativeInstructions is how long the instructions of a compaction on demand may be, in chars.
const maxNativeInstructions = 16_384

// NativeBody makes the request for a native compaction out of an ordinary request with the messages that are to
// be compacted: what the form does not take is left out, and what asks for it is put in. instructions replace the
// vendor's own prompt, where the form takes some; ones that are too long for it are left out.
func NativeBody(form NativeForm, body []byte, instructions string) ([]byte, error) {
	if pipeline.Chars(instructions) > maxNativeInstructions {
		instructions = ""
	}
	if form == NativeCompact {
		return compactBody(body)
	}
	drop := []string{
		"stop_sequences", "output_format", "output_config.format", "output_config.task_budget",
		"context_management", "stream",
	}
	switch gjson.GetBytes(body, "tool_choice.type").String() {
	case "any", "tool":
		drop = append(drop, "tool_choice")
	}
	var err error
	for _, path := range drop {
		if !gjson.GetBytes(body, path).Exists() {
			continue
		}
		if body, err = sjson.DeleteBytes(body, path); err != nil {
			return nil, fmt.Errorf("take %s out of the request: %w", path, err)
		}
	}
	switch form {
	case NativeOnDemand:
		asked := struct {
			Type         string `json:"type"`
			Instructions string `json:"instructions,omitempty"`
		}{"summarize", instructions}
		return putKey(body, "compaction", asked)
	case NativeEdit:
		type trigger struct {
			Type  string `json:"type"`
			Value int    `json:"value"`
		}
		type edit struct {
			Type         string  `json:"type"`
			Trigger      trigger `json:"trigger"`
			Pause        bool    `json:"pause_after_compaction"`
			Instructions string  `json:"instructions,omitempty"`
		}
		return putKey(body, "context_management", map[string][]edit{"edits": {{
			Type: "compact_20260112", Trigger: trigger{"input_tokens", pipeline.MinAnthropicCompactionInputTokens},
			Pause: true, Instructions: instructions,
		}}})
	}
	return nil, fmt.Errorf("there is no native compaction %q", form)
}

func putKey(body []byte, key string, value any) ([]byte, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", key, err)
	}
	return sjson.SetRawBytes(body, key, raw)
}

// compactBody keeps what /responses/compact takes.
func compactBody(body []byte) ([]byte, error) {
	out := []byte("{}")
	var err error
	for _, key := range []string{"model", "instructions", "input", "prompt_cache_key"} {
		v := gjson.GetBytes(body, key)
		if !v.Exists() || v.Type == gjson.Null {
			continue
		}
		if out, err = sjson.SetRawBytes(out, key, []byte(v.Raw)); err != nil {
			return nil, fmt.Errorf("make the request for a compaction: %w", err)
		}
	}
	return out, nil
}

// editTrigger is a trigger that no context reaches, in tokens: the edit is then declared and does nothing.
const editTrigger = 10_000_000

// WithCompactionEdit declares the compaction edit in an ordinary request that sends a block of it back: without it
// Anthropic does not know the block. For every other form the body is given back as it is. An empty body is an
// object without keys.
func WithCompactionEdit(body []byte, form NativeForm) ([]byte, error) {
	if form == NativeEdit && len(body) == 0 {
		body = []byte("{}")
	}
	if form != NativeEdit || gjson.GetBytes(body, `context_management.edits.#(type=="compact_20260112")`).Exists() {
		return body, nil
	}
	edit := fmt.Sprintf(`{"type":"compact_20260112","trigger":{"type":"input_tokens","value":%d}}`, editTrigger)
	if gjson.GetBytes(body, "context_management.edits").IsArray() {
		return sjson.SetRawBytes(body, "context_management.edits.-1", []byte(edit))
	}
	return spliceKeys(body, "context_management",
		func([]byte) string { return `"context_management":{"edits":[` + edit + `]}` })
}

// nativeProtocol is a protocol with compactions of its own.
type nativeProtocol interface {
	native(form NativeForm) (protocol, error)
}

func noForm(vendor string, form NativeForm) error {
	return pipeline.Errorf(pipeline.BadRequest, "%s: there is no native compaction %q", vendor, form)
}

func (p *anthropicProtocol) native(form NativeForm) (protocol, error) {
	if form.Format() != TypeAnthropic {
		return nil, noForm(p.vendor.Name, form)
	}
	c := *p
	c.form = form
	return &c, nil
}

func (p *responsesProtocol) native(form NativeForm) (protocol, error) {
	if form != NativeCompact {
		return nil, noForm(p.vendor.Name, form)
	}
	return &compactProtocol{p}, nil
}

// compactProtocol speaks /responses/compact, which does not stream.
type compactProtocol struct{ *responsesProtocol }

func (p *compactProtocol) streaming([]byte) string { return "" }

func (p *compactProtocol) post(ctx context.Context, _ string, body []byte,
	headers http.Header,
) (*http.Response, error) {
	var res *http.Response
	opts := make([]option.RequestOption, 0, len(headers))
	for k := range headers {
		opts = append(opts, option.WithHeader(k, headers.Get(k)))
	}
	err := p.client.Post(ctx, "responses/compact", body, &res, opts...)
	return res, err
}

func (p *compactProtocol) events(*http.Response, *answer) error {
	return errors.New("the endpoint does not stream")
}

func (p *compactProtocol) decode(body []byte) (*answer, error) { return decodeCompacted(body) }

// decodeCompacted reads a compacted window. It is kept whole and in its order: the vendor says that it may not be
// pruned.
func decodeCompacted(body []byte) (*answer, error) {
	var c responses.CompactedResponse
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, err
	}
	if !c.JSON.Output.Valid() {
		return nil, errors.New("no output")
	}
	a := &answer{asked: true, id: c.ID, model: gjson.GetBytes(body, "model").String(), usage: responsesUsage(c.Usage)}
	a.Finish = pipeline.FinishStop
	var readable []string
	found := false
	for _, item := range c.Output {
		switch item.Type {
		case "compaction":
			found = found || item.EncryptedContent != ""
		case "message":
			for _, part := range item.Content {
				if part.Text != "" {
					readable = append(readable, part.Text)
				}
			}
		}
	}
	if found {
		a.native, a.nativeText = json.RawMessage(c.JSON.Output.Raw()), strings.Join(readable, "\n")
	}
	return a, nil
}

// compactionBlock is a block of Anthropic's as a stream brings it: whole at its start, or with its content in one
// delta.
type compactionBlock struct {
	raw     string
	changes []gjson.Result
}

func (b *compactionBlock) delta(raw string) {
	if b.raw != "" && gjson.Get(raw, "type").String() == "compaction_delta" {
		b.changes = append(b.changes, gjson.Parse(raw))
	}
}

// whole is the block with what the deltas said, in the bytes of the vendor where there were none.
func (b *compactionBlock) whole() string {
	raw := b.raw
	for _, d := range b.changes {
		d.ForEach(func(k, v gjson.Result) bool {
			if k.String() == "type" || v.Type == gjson.Null {
				return true
			}
			// The key is one of the vendor's, and the block is an object: it can be set.
			if changed, err := sjson.SetRaw(raw, k.String(), v.Raw); err == nil {
				raw = changed
			}
			return true
		})
	}
	return raw
}

// compaction takes in a block of Anthropic's. One without content is a compaction that failed: it is dropped,
// and never kept.
func (a *answer) compaction(raw string) {
	content := gjson.Get(raw, "content")
	if content.Type != gjson.String || strings.TrimSpace(content.String()) == "" {
		return
	}
	a.native, a.nativeText = json.RawMessage("["+raw+"]"), content.String()
}

// nativeVerdict says whether a native compaction came about: nil, or why not.
func nativeVerdict(vendor string, a *answer) error {
	if a.native != nil && a.Finish == pipeline.FinishStop {
		return nil
	}
	kind, why := pipeline.EmptyOutput, "the answer holds no compaction block with content"
	switch a.Finish {
	case pipeline.FinishRefusal, pipeline.FinishContentFilter:
		kind, why = pipeline.Refused, "the vendor declined to compact"
	case pipeline.FinishLength:
		kind, why = pipeline.OutputTooLong, "the compaction was cut off at the output limit"
	case pipeline.FinishToolUse:
		kind, why = pipeline.ToolCallOutput, "the model called a tool in place of compacting"
	case pipeline.FinishError:
		kind, why = pipeline.ServerError, "the service broke the compaction off"
	case pipeline.FinishNone:
		kind, why = pipeline.MalformedOutput, "the answer ends without a reason to finish, so it is incomplete"
	}
	a.native, a.nativeText = nil, ""
	return pipeline.Errorf(kind, "%s: %s", vendor, why)
}

// Family names the models that can be taken to read each other's opaque blocks: the vendor, and the model's name
// up to its first number, such as "anthropic/claude-opus-5" of claude-opus-5-5 or "openai/gpt-5" of gpt-5.4-mini.
func Family(vendor, model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	end := strings.IndexAny(name, "0123456789")
	if end >= 0 {
		for end < len(name) && name[end] >= '0' && name[end] <= '9' {
			end++
		}
		name = name[:end]
	}
	return strings.ToLower(vendor) + "/" + name
}
