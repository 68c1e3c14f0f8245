package vendorserver

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// responsesRequestKeys are the keys of a request, from the parameters of the official SDK (v3.99), and stream;
// responsesCompactKeys those of a request to /responses/compact.
var (
	responsesRequestKeys = []string{
		"access_programs", "background", "context_management", "conversation", "image", "include", "input",
		"instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls",
		"previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention",
		"reasoning", "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text",
		"tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
	}
	responsesCompactKeys = []string{
		"image", "input", "instructions", "model", "previous_response_id", "prompt_cache_key", "prompt_cache_options",
		"prompt_cache_retention", "service_tier",
	}
)

// itemKeys are the keys of an item by type: the required ones, a "|" and the optional ones. The id of a stored item is
// required by the documentation, but the API accepts items without one.
var itemKeys = map[string]string{
	"message":                 "role content | id status phase",
	"reasoning":               "summary | id encrypted_content content status",
	"compaction":              "encrypted_content | id",
	"function_call":           "call_id name arguments | id status namespace async caller",
	"function_call_output":    "call_id output | id status name namespace caller",
	"custom_tool_call":        "call_id name input | id status namespace async caller",
	"custom_tool_call_output": "call_id output | id status caller",
	"computer_call":           "call_id | id action actions pending_safety_checks status",
	"computer_call_output":    "call_id output | id acknowledged_safety_checks status",
	"local_shell_call":        "call_id action status | id",
	"local_shell_call_output": "id output | status",
	"shell_call":              "call_id action | id status environment caller",
	"shell_call_output":       "call_id output | id status max_output_length caller",
	"apply_patch_call":        "call_id operation status | id caller",
	"apply_patch_call_output": "call_id status | id output caller",
	"tool_search_call":        "arguments | id call_id status execution",
	"tool_search_output":      "tools | id call_id status execution",
	"program":                 "call_id code fingerprint | id",
	"program_output":          "call_id result status | id",
	"web_search_call":         "action status | id",
	"file_search_call":        "queries status | id results",
	"code_interpreter_call":   "code outputs container_id status | id",
	"image_generation_call": "result status | id revised_prompt action background output_format quality size " +
		"error svg_usage",
	"mcp_call":              "arguments name server_label | id approval_request_id output error status",
	"mcp_list_tools":        "server_label tools | id error",
	"mcp_approval_request":  "arguments name server_label | id",
	"mcp_approval_response": "approval_request_id approve | id reason",
	"additional_tools":      "tools | id role",
	"configuration_update":  "| id reasoning text",
	"compaction_trigger":    "| id",
	"item_reference":        "id |",
}

// clientCalls are the types of call that the client answers, each with the type of its result.
var clientCalls = map[string]string{
	"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output",
	"computer_call": "computer_call_output", "local_shell_call": "local_shell_call_output",
	"shell_call": "shell_call_output", "apply_patch_call": "apply_patch_call_output", "program": "program_output",
}

var reItemName = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,128}$`)

const (
	maxItemID          = 64 // chars of the id of an item or a call
	minResponsesOutput = 16 // the least that max_output_tokens may be
)

// ValidateOpenAIResponses says whether the OpenAI Responses API would take the body. The first fault is the error.
// model may be absent: see ValidateOptions.
func ValidateOpenAIResponses(body []byte) error {
	return ValidateOpenAIResponsesRequest(body, ValidateOptions{})
}

// ValidateOpenAIResponsesRequest is ValidateOpenAIResponses with options.
func ValidateOpenAIResponsesRequest(body []byte, o ValidateOptions) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	v := &responsesCheck{o: o, ids: map[string]bool{}, open: map[string]responsesCall{}, known: map[string]bool{}}
	return v.request(node{raw: body})
}

// responsesCheck is one validation.
type responsesCheck struct {
	o ValidateOptions
	// stateful says that the vendor stores items before the input.
	stateful bool
	ids      map[string]bool
	open     map[string]responsesCall // calls without a result, by id
	known    map[string]bool          // all calls
	order    []string                 // their ids, in order
	// reasoning is the reasoning item whose following item has not come yet, "" for none.
	reasoning string
}

type responsesCall struct{ typ, path string }

func (v *responsesCheck) request(n node) error {
	keys := responsesRequestKeys
	if v.o.Compact {
		keys = responsesCompactKeys
	}
	if v.o.Compatible {
		keys = nil
	}
	var required []string
	if v.o.Request {
		required = []string{"model"}
	}
	root, err := n.object(required, keys)
	if err != nil {
		return err
	}
	has := func(k string) bool { p, ok := root[k]; return ok && !p.isNull() }
	v.stateful = has("previous_response_id") || has("conversation")
	if has("previous_response_id") && has("conversation") {
		return fmt.Errorf("Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Ensure you " +
			"are only providing one of them.")
	}
	for _, step := range []struct {
		key   string
		check func(node) error
	}{
		{"model", nonEmptyString},
		{"instructions", func(n node) error { _, err := n.str(); return err }},
		{"max_output_tokens", func(n node) error { return n.integer(minResponsesOutput) }},
		{"stream", boolean},
		{"store", boolean},
		{"background", boolean},
		{"parallel_tool_calls", boolean},
		{"temperature", func(n node) error { return n.number(0, 2) }},
		{"top_p", func(n node) error { return n.number(0, 1) }},
		{"tools", v.tools},
		{"input", v.input},
	} {
		if has(step.key) {
			if err := step.check(root[step.key]); err != nil {
				return err
			}
		}
	}
	if !has("input") && !v.stateful && !has("prompt") {
		return fmt.Errorf("Missing required parameter: 'input'.")
	}
	if has("stream_options") && !(has("stream") && root["stream"].kind() == 't') && !v.o.Compatible {
		return fmt.Errorf("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if c := root["tool_choice"]; c.isObject() || strOf(root, "tool_choice") == "required" {
		if !has("tools") {
			return fmt.Errorf("Tool choice must be specified with 'tools' parameter.")
		}
	}
	return nil
}

func (v *responsesCheck) tools(n node) error {
	tools, err := n.array()
	if err != nil {
		return err
	}
	if len(tools) > maxOpenAITools {
		return fmt.Errorf("Invalid 'tools': array too long. Expected an array with maximum length %d, but got an "+
			"array with length %d instead.", maxOpenAITools, len(tools))
	}
	for _, t := range tools {
		m, err := t.object([]string{"type"}, nil)
		if err != nil {
			return err
		}
		var optional []string
		switch strOf(m, "type") {
		case "function":
			optional = []string{
				"type", "description", "parameters", "strict", "async", "defer_loading",
				"allowed_callers", "output_schema",
			}
		case "custom":
			optional = []string{"type", "description", "format", "async", "defer_loading", "allowed_callers"}
		default:
			continue // the vendor runs this tool
		}
		if v.o.Compatible {
			optional = nil
		}
		if m, err = t.object([]string{"name"}, optional); err != nil {
			return err
		}
		if !reOpenAITool.MatchString(strOf(m, "name")) {
			return m["name"].fail("string does not match pattern. Expected a string that matches the pattern '%s'",
				reOpenAITool)
		}
		if p, ok := m["parameters"]; ok && !p.isNull() && !p.isObject() {
			return p.fail("Invalid type: expected an object")
		}
	}
	return nil
}

func (v *responsesCheck) input(n node) error {
	if n.isString() {
		return nil
	}
	items, err := n.array()
	if err != nil {
		return fmt.Errorf("Invalid type for 'input': expected one of a string or array of input items.")
	}
	if len(items) == 0 && !v.stateful {
		return fmt.Errorf(
			"Invalid 'input': empty array. Expected an array with minimum length 1, but got an empty array instead.")
	}
	for i, it := range items {
		it.path = fmt.Sprintf("input[%d]", i)
		if err := v.item(it); err != nil {
			return err
		}
	}
	if v.reasoning != "" {
		return v.lonelyReasoning()
	}
	for _, id := range v.order {
		if call, open := v.open[id]; open {
			return fmt.Errorf("No tool output found for %s %s.", strings.ReplaceAll(call.typ, "_", " "), id)
		}
	}
	return nil
}

func (v *responsesCheck) lonelyReasoning() error {
	return fmt.Errorf("Item '%s' of type 'reasoning' was provided without its required following item.", v.reasoning)
}

func (v *responsesCheck) item(n node) error {
	m, err := n.object(nil, nil)
	if err != nil {
		return fmt.Errorf("Invalid type for '%s': expected an object.", n.path)
	}
	typ := strOf(m, "type")
	if _, ok := m["role"]; ok && typ == "" {
		typ = "message"
	}
	spec, ok := itemKeys[typ]
	if !ok {
		return fmt.Errorf("Invalid value: '%s'. (%s.type)", typ, n.path)
	}
	must, may, _ := strings.Cut(spec, "|")
	required, optional := strings.Fields(must), append(strings.Fields(may), "type")
	if v.o.Compatible {
		optional = nil
	}
	for _, k := range required {
		if _, ok := m[k]; !ok {
			return fmt.Errorf("Missing required parameter: '%s.%s'.", n.path, k)
		}
	}
	if _, err := n.object(required, optional); err != nil {
		return fmt.Errorf("Unknown parameter: %w", err)
	}
	if err := v.identity(n, m, typ); err != nil {
		return err
	}
	mine := typ != "message" && !strings.HasSuffix(typ, "_output") || strOf(m, "role") == "assistant"
	if v.reasoning != "" && !mine {
		return v.lonelyReasoning()
	}
	if mine {
		v.reasoning = ""
	}
	switch typ {
	case "message":
		return v.message(n, m)
	case "reasoning":
		return v.reasoned(n, m)
	case "compaction":
		return v.nonEmpty(m["encrypted_content"])
	}
	if _, ok := clientCalls[typ]; ok {
		return v.call(n, m, typ)
	}
	if strings.HasSuffix(typ, "_output") && typ != "tool_search_output" {
		return v.result(n, m, typ)
	}
	return nil
}

func (v *responsesCheck) nonEmpty(n node) error {
	s, err := n.str()
	if err != nil {
		return err
	}
	if s == "" {
		return fmt.Errorf(
			"Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.",
			n.path)
	}
	return nil
}

// identity checks that each item id occurs once.
func (v *responsesCheck) identity(n node, m map[string]node, typ string) error {
	for _, key := range []string{"id", "call_id"} {
		id, ok := m[key]
		if !ok || id.isNull() {
			continue
		}
		if err := v.nonEmpty(id); err != nil {
			return err
		}
		if s := strOf(m, key); len(s) > maxItemID {
			return fmt.Errorf("Invalid '%s.%s': string too long. Expected a string with maximum length %d, but "+
				"got a string with length %d instead.", n.path, key, maxItemID, len(s))
		}
	}
	id := strOf(m, "id")
	if id == "" || typ == "item_reference" || typ == "local_shell_call_output" {
		return nil
	}
	if v.ids[id] {
		return fmt.Errorf("Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
	}
	v.ids[id] = true
	return nil
}

// itemParts are the kinds of content part by role.
var itemParts = map[string][]string{
	"user":      {"input_text", "input_image", "input_file"},
	"system":    {"input_text", "input_image", "input_file"},
	"developer": {"input_text", "input_image", "input_file"},
	"assistant": {"output_text", "refusal"},
}

func (v *responsesCheck) message(n node, m map[string]node) error {
	role := strOf(m, "role")
	allowed, ok := itemParts[role]
	if !ok {
		return fmt.Errorf(
			"Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'. (%s.role)",
			role, n.path)
	}
	return v.content(m["content"], allowed)
}

func (v *responsesCheck) content(n node, allowed []string) error {
	if n.isString() {
		return nil
	}
	parts, err := n.array()
	if err != nil {
		return fmt.Errorf("Invalid type for '%s': expected one of an array of objects or string.", n.path)
	}
	for _, p := range parts {
		m, err := p.object([]string{"type"}, nil)
		if err != nil {
			return err
		}
		typ := strOf(m, "type")
		if !slices.Contains(allowed, typ) {
			return fmt.Errorf("Invalid value: '%s'. Supported values are: '%s'. (%s)", typ,
				strings.Join(allowed, "', '"), p.path)
		}
		if err := v.part(p, typ); err != nil {
			return err
		}
	}
	return nil
}

func (v *responsesCheck) part(n node, typ string) error {
	keys := map[string]string{
		"input_text":  "text | prompt_cache_breakpoint",
		"output_text": "text | annotations logprobs",
		"refusal":     "refusal |",
		"input_image": "| image_url file_id detail prompt_cache_breakpoint",
		"input_file":  "| file_id file_data file_url filename detail prompt_cache_breakpoint",
	}[typ]
	must, may, _ := strings.Cut(keys, "|")
	optional := append(strings.Fields(may), "type")
	if v.o.Compatible {
		optional = nil
	}
	m, err := n.object(strings.Fields(must), optional)
	if err != nil {
		return err
	}
	switch typ {
	case "input_text", "output_text":
		_, err = m["text"].str()
	case "refusal":
		_, err = m["refusal"].str()
	case "input_image":
		err = imageAddress(n, m)
	case "input_file":
		if strOf(m, "file_id") == "" && strOf(m, "file_data") == "" && strOf(m, "file_url") == "" {
			err = n.fail("Missing required parameter: one of file_id, file_data, file_url")
		}
	}
	return err
}

func imageAddress(n node, m map[string]node) error {
	url := strOf(m, "image_url")
	switch {
	case strOf(m, "file_id") != "":
		return nil
	case url == "":
		return n.fail("Missing required parameter: one of image_url, file_id")
	case strings.HasPrefix(url, "data:image/") && strings.Contains(url, ";base64,"), strings.HasPrefix(url, "http://"),
		strings.HasPrefix(url, "https://"):
		return nil
	}
	return m["image_url"].fail("Expected a base64-encoded data URL with an image MIME type, or an http address")
}

func (v *responsesCheck) reasoned(n node, m map[string]node) error {
	parts, err := m["summary"].array()
	if err != nil {
		return err
	}
	for _, p := range parts {
		if _, err := p.object([]string{"type", "text"}, []string{}); err != nil {
			return err
		}
	}
	secret, ok := m["encrypted_content"]
	if ok && !secret.isNull() {
		if err := v.nonEmpty(secret); err != nil {
			return err
		}
	}
	id := strOf(m, "id")
	if id == "" && (!ok || secret.isNull()) {
		return n.fail("A reasoning item needs an id that is stored, or encrypted_content")
	}
	v.reasoning = id
	return nil
}

func (v *responsesCheck) call(n node, m map[string]node, typ string) error {
	id, err := m["call_id"].str()
	if err != nil {
		return err
	}
	if v.known[id] {
		return fmt.Errorf("Duplicate call_id %s. (%s)", id, n.path)
	}
	for key, types := range map[string][]string{"arguments": {"function_call"}, "input": {"custom_tool_call"}} {
		if slices.Contains(types, typ) {
			if _, err := m[key].str(); err != nil {
				return err
			}
		}
	}
	if name, ok := m["name"]; ok && !reItemName.MatchString(strOf(m, "name")) {
		return name.fail("string does not match pattern. Expected a string that matches the pattern '%s'", reItemName)
	}
	v.known[id] = true
	v.open[id] = responsesCall{typ, n.path}
	v.order = append(v.order, id)
	return nil
}

func (v *responsesCheck) result(n node, m map[string]node, typ string) error {
	key := "call_id"
	if typ == "local_shell_call_output" {
		key = "id"
	}
	id, err := m[key].str()
	if err != nil {
		return err
	}
	call, open := v.open[id]
	switch {
	case !open && v.known[id]:
		return fmt.Errorf("Duplicate tool output for call_id %s. (%s)", id, n.path)
	case !open && !v.stateful:
		return fmt.Errorf("No tool call found for %s with call_id %s.", strings.ReplaceAll(typ, "_", " "), id)
	case open && clientCalls[call.typ] != typ && !(call.typ == "local_shell_call" && typ == "function_call_output"):
		return fmt.Errorf("No tool call found for %s with call_id %s: that is a %s.", strings.ReplaceAll(typ, "_", " "),
			id, call.typ)
	}
	delete(v.open, id)
	switch typ {
	case "function_call_output", "custom_tool_call_output":
		return v.content(m["output"], itemParts["user"])
	case "local_shell_call_output":
		_, err = m["output"].str()
	case "computer_call_output":
		var shot map[string]node
		if shot, err = m["output"].object([]string{"type"}, []string{"image_url", "file_id"}); err == nil {
			err = imageAddress(m["output"], shot)
		}
	case "shell_call_output":
		var chunks []node
		if chunks, err = m["output"].array(); err != nil {
			return err
		}
		for _, c := range chunks {
			if _, err := c.object([]string{"stdout", "stderr", "outcome"}, []string{"created_by"}); err != nil {
				return err
			}
		}
	}
	return err
}
