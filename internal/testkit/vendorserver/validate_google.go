package vendorserver

import (
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The keys of a request and of what is in it, from the types of the official SDK (v1.77). The API also accepts
// each in the spelling of its protocol buffers, with underscores.
var (
	googleRequestKeys = []string{
		"cachedContent", "contents", "continuationToken", "generationConfig", "labels", "model", "safetySettings",
		"serviceTier", "store", "systemInstruction", "toolConfig", "tools",
	}
	googleGenerationKeys = []string{
		"audioTimestamp", "audioTranscriptionConfig", "candidateCount", "enableAffectiveDialog",
		"enableEnhancedCivicAnswers", "frequencyPenalty", "imageConfig", "logprobs", "maxOutputTokens",
		"mediaResolution", "modelSelectionConfig", "presencePenalty", "responseFormat", "responseJsonSchema",
		"responseLogprobs", "responseMimeType", "responseModalities", "responseSchema", "routingConfig", "seed",
		"speechConfig", "stopSequences", "temperature", "thinkingConfig", "topK", "topP", "translationConfig",
	}
	googleToolKeys = []string{
		"codeExecution", "computerUse", "enterpriseWebSearch", "exaAiSearch", "fileSearch", "functionDeclarations",
		"googleMaps", "googleSearch", "googleSearchRetrieval", "mcpServers", "parallelAiSearch", "retrieval",
		"urlContext",
	}
	// A part has exactly one of these keys.
	googlePartData = []string{
		"codeExecutionResult", "executableCode", "fileData", "functionCall", "functionResponse", "inlineData", "text",
		"toolCall", "toolResponse",
	}
	googlePartKeys = []string{
		"audioTranscription", "mediaProcessing", "mediaResolution", "partMetadata", "speechMetadata", "thought",
		"thoughtSignature", "videoMetadata",
	}
	// googleSchemaKeys are the keys of the vendor's own schema, a part of OpenAPI's and not JSON Schema.
	googleSchemaKeys = []string{
		"additionalProperties", "anyOf", "default", "defs", "description", "enum", "example", "format", "items",
		"maxItems", "maxLength", "maxProperties", "maximum", "minItems", "minLength", "minProperties", "minimum",
		"nullable", "pattern", "properties", "propertyOrdering", "ref", "required", "title", "type",
	}
)

// reGoogleName matches the names that a function may have.
var reGoogleName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)

// ValidateGoogle says whether Google's generateContent would accept the body. The error is the first problem. The model
// is in the URL of the request.
func ValidateGoogle(body []byte) error { return ValidateGoogleRequest(body, ValidateOptions{}) }

// ValidateGoogleRequest is ValidateGoogle with options.
func ValidateGoogleRequest(body []byte, o ValidateOptions) error {
	if err := checkJSON(body); err != nil {
		return err
	}
	v := &googleCheck{o: o}
	return v.request(node{raw: body})
}

// googleCheck is one validation.
type googleCheck struct {
	o ValidateOptions
	// open are the calls of the previous content, nil for none.
	open []googleCall
	// role is that of the previous content, "" before the first.
	role string
}

type googleCall struct{ name, id string }

// object reads an object by the API's own spelling of its keys and refuses all others.
func (v *googleCheck) object(n node, allowed ...string) (map[string]node, error) {
	raw, err := n.object(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("Invalid JSON payload received. Proto field is not repeating or is no object, at '%s'.",
			n.path)
	}
	names := make([]string, 0, len(raw))
	for k := range raw {
		names = append(names, k)
	}
	slices.Sort(names)
	out := make(map[string]node, len(raw))
	for _, k := range names {
		key := camelCase(k)
		if allowed != nil && !v.o.Compatible && !slices.Contains(allowed, key) {
			return nil, fmt.Errorf("Invalid JSON payload received. Unknown name %q at '%s': Cannot find field.", k,
				n.path)
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("Invalid JSON payload received. The field %q is there twice at '%s'.", key, n.path)
		}
		if p := raw[k]; !p.isNull() {
			out[key] = p
		}
	}
	return out, nil
}

func camelCase(s string) string {
	words := strings.Split(s, "_")
	for i, w := range words {
		if i > 0 && w != "" {
			words[i] = strings.ToUpper(w[:1]) + w[1:]
		}
	}
	return strings.Join(words, "")
}

func (v *googleCheck) request(n node) error {
	root, err := v.object(n, googleRequestKeys...)
	if err != nil {
		return err
	}
	if s, ok := root["systemInstruction"]; ok {
		if err := v.systemInstruction(s); err != nil {
			return err
		}
	}
	if c, ok := root["generationConfig"]; ok {
		m, err := v.object(c, googleGenerationKeys...)
		if err != nil {
			return err
		}
		if p, ok := m["maxOutputTokens"]; ok {
			if err := p.integer(1); err != nil {
				return err
			}
		}
		if p, ok := m["temperature"]; ok {
			if err := p.number(0, 2); err != nil {
				return err
			}
		}
	}
	if t, ok := root["tools"]; ok {
		if err := v.tools(t); err != nil {
			return err
		}
	}
	contents, ok := root["contents"]
	if !ok {
		return fmt.Errorf("* GenerateContentRequest.contents: contents is not specified")
	}
	return v.contents(contents)
}

func (v *googleCheck) systemInstruction(n node) error {
	m, err := v.object(n, "role", "parts")
	if err != nil {
		return err
	}
	parts, err := m["parts"].array()
	if err != nil || len(parts) == 0 {
		return n.fail("must not be empty")
	}
	for _, p := range parts {
		pm, err := v.object(p, append(slices.Clone(googlePartData), googlePartKeys...)...)
		if err != nil {
			return err
		}
		if s, err := pm["text"].str(); err != nil || s == "" {
			return p.fail("System instruction should contain text only, and some")
		}
	}
	return nil
}

func (v *googleCheck) tools(n node) error {
	tools, err := n.array()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for _, t := range tools {
		m, err := v.object(t, googleToolKeys...)
		if err != nil {
			return err
		}
		list, ok := m["functionDeclarations"]
		if !ok {
			continue
		}
		declarations, err := list.array()
		if err != nil {
			return err
		}
		for _, d := range declarations {
			name, err := v.declaration(d)
			if err != nil {
				return err
			}
			if names[name] {
				return fmt.Errorf("Duplicate function declaration found: %s", name)
			}
			names[name] = true
		}
	}
	return nil
}

func (v *googleCheck) declaration(n node) (string, error) {
	m, err := v.object(n, "behavior", "description", "name", "parameters", "parametersJsonSchema", "response",
		"responseJsonSchema")
	if err != nil {
		return "", err
	}
	name := strOf(m, "name")
	if !reGoogleName.MatchString(name) {
		return "", fmt.Errorf("* GenerateContentRequest.%s.name: Invalid function name. Must start with a letter "+
			"or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or "+
			"dashes (-), with a maximum length of 128.", n.path)
	}
	parameters, has := m["parameters"]
	if _, both := m["parametersJsonSchema"]; both && has {
		return "", n.fail("parameters and parametersJsonSchema are mutually exclusive")
	}
	if has {
		return name, v.schema(parameters)
	}
	return name, nil
}

// schema checks a schema in the vendor's own form.
func (v *googleCheck) schema(n node) error {
	m, err := v.object(n, googleSchemaKeys...)
	if err != nil {
		return err
	}
	if t, ok := m["type"]; ok {
		switch strings.ToUpper(strOf(m, "type")) {
		case "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL":
		default:
			return t.fail("Invalid value (TYPE_UNSPECIFIED)")
		}
	}
	if items, ok := m["items"]; ok {
		if err := v.schema(items); err != nil {
			return err
		}
	}
	if properties, ok := m["properties"]; ok {
		all, err := properties.object(nil, nil)
		if err != nil {
			return err
		}
		for _, p := range sortedNodes(all) {
			if err := v.schema(p); err != nil {
				return err
			}
		}
	}
	if any, ok := m["anyOf"]; ok {
		all, err := any.array()
		if err != nil {
			return err
		}
		for _, p := range all {
			if err := v.schema(p); err != nil {
				return err
			}
		}
	}
	return nil
}

func sortedNodes(m map[string]node) []node {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	out := make([]node, len(keys))
	for i, k := range keys {
		out[i] = m[k]
	}
	return out
}

func (v *googleCheck) contents(n node) error {
	contents, err := n.array()
	if err != nil {
		return err
	}
	if len(contents) == 0 {
		return fmt.Errorf("* GenerateContentRequest.contents: contents is not specified")
	}
	for i, c := range contents {
		c.path = fmt.Sprintf("contents[%d]", i)
		if err := v.content(c); err != nil {
			return err
		}
	}
	if v.open != nil {
		return v.unanswered()
	}
	return nil
}

func (v *googleCheck) unanswered() error {
	return fmt.Errorf("Please ensure that the number of function response parts is equal to the number of " +
		"function call parts of the function call turn.")
}

func (v *googleCheck) content(n node) error {
	m, err := v.object(n, "role", "parts")
	if err != nil {
		return err
	}
	role := strOf(m, "role")
	switch role {
	case "":
		role = "user"
	case "user", "model":
	case "function":
		role = "user"
	default:
		return fmt.Errorf("Please use a valid role: user, model. (%s)", n.path)
	}
	parts, err := m["parts"].array()
	if err != nil || len(parts) == 0 {
		return fmt.Errorf("* GenerateContentRequest.%s.parts: contents.parts must not be empty.", n.path)
	}
	var calls, responses []googleCall
	for i, p := range parts {
		p.path = fmt.Sprintf("%s.parts[%d]", n.path, i)
		data, c, err := v.part(p, role)
		if err != nil {
			return err
		}
		switch data {
		case "functionCall":
			calls = append(calls, c)
		case "functionResponse":
			responses = append(responses, c)
		}
	}
	if err := v.turn(n, role, calls, responses); err != nil {
		return err
	}
	v.role, v.open = role, calls
	return nil
}

// turn checks that calls and their responses are in alternating turns of their own.
func (v *googleCheck) turn(n node, role string, calls, responses []googleCall) error {
	switch {
	case v.open == nil && len(responses) > 0:
		return fmt.Errorf(
			"Please ensure that function response turn comes immediately after a function call turn. (%s)", n.path)
	case len(v.open) != len(responses):
		return v.unanswered()
	case len(calls) > 0 && v.role != "user":
		return fmt.Errorf("Please ensure that function call turn comes immediately after a user turn or after a "+
			"function response turn. (%s)", n.path)
	case v.role == "" && role == "model":
		return fmt.Errorf("Please ensure that multiturn requests begin with a user role. (%s)", n.path)
	}
	open := slices.Clone(v.open)
	for _, r := range responses {
		i := slices.IndexFunc(open, func(c googleCall) bool {
			return c.name == r.name &&
				(c.id == r.id || c.id == "" || r.id == "")
		})
		if i < 0 {
			return fmt.Errorf("The function response %q answers no function call of the turn before. (%s)", r.name,
				n.path)
		}
		open = slices.Delete(open, i, i+1)
	}
	return nil
}

func (v *googleCheck) part(n node, role string) (data string, call googleCall, err error) {
	if n.isString() {
		return "", call, fmt.Errorf(
			"Invalid value at '%s' (type.googleapis.com/google.ai.generativelanguage.v1beta.Part).", n.path)
	}
	m, err := v.object(n, append(slices.Clone(googlePartData), googlePartKeys...)...)
	if err != nil {
		return "", call, err
	}
	for _, key := range googlePartData {
		if _, ok := m[key]; !ok {
			continue
		}
		if data != "" {
			return "", call, fmt.Errorf(
				"Invalid value at '%s' (oneof), oneof field 'data' is already set. Cannot set '%s'.", n.path, key)
		}
		data = key
	}
	signature, signed := m["thoughtSignature"]
	if signed {
		if err := signatureOK(signature); err != nil {
			return "", call, err
		}
	}
	if t, ok := m["thought"]; ok && !t.isBool() {
		return "", call, t.fail("Invalid value (TYPE_BOOL)")
	}
	switch data {
	case "":
		if signed {
			return data, call, nil
		}
		return "", call, fmt.Errorf(
			"* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", n.path)
	case "text":
		s, err := m["text"].str()
		if err == nil && s == "" && !signed {
			err = fmt.Errorf("Unable to submit request because it must have a text parameter. (%s)", n.path)
		}
		return data, call, err
	case "inlineData":
		d, err := v.object(m[data], "mimeType", "data", "displayName")
		if err == nil && (strOf(d, "mimeType") == "" || strOf(d, "data") == "") {
			err = m[data].fail("mimeType and data are required")
		}
		return data, call, err
	case "fileData":
		d, err := v.object(m[data], "mimeType", "fileUri", "displayName")
		if err == nil && strOf(d, "fileUri") == "" {
			err = m[data].fail("fileUri is required")
		}
		return data, call, err
	case "functionCall":
		if role != "model" {
			return "", call, fmt.Errorf("A function call may only stand in a turn of the model. (%s)", n.path)
		}
		call, err = v.call(m[data], "args", "partialArgs", "willContinue")
	case "functionResponse":
		if role != "user" {
			return "", call, fmt.Errorf("A function response may only stand in a turn of the user. (%s)", n.path)
		}
		call, err = v.call(m[data], "response", "parts", "willContinue", "scheduling")
	}
	return data, call, err
}

// call checks a function call or response. holds names its keys beside name and id, the object first.
func (v *googleCheck) call(n node, holds ...string) (googleCall, error) {
	m, err := v.object(n, append([]string{"id", "name"}, holds...)...)
	if err != nil {
		return googleCall{}, err
	}
	call := googleCall{strOf(m, "name"), strOf(m, "id")}
	if call.name == "" {
		return call, n.fail("name: Field is required.")
	}
	if p, ok := m[holds[0]]; ok && !p.isObject() {
		return call, p.fail("Invalid value (type.googleapis.com/google.protobuf.Struct)")
	}
	if holds[0] == "response" {
		if _, ok := m["response"]; !ok {
			return call, n.fail("response: Field is required.")
		}
	}
	return call, nil
}

// signatureOK says whether a signature is base64, plain or for addresses.
func signatureOK(n node) error {
	s, err := n.str()
	if err != nil {
		return err
	}
	s = strings.TrimRight(s, "=")
	if _, err := base64.RawStdEncoding.DecodeString(s); err == nil {
		return nil
	}
	if _, err := base64.RawURLEncoding.DecodeString(s); err == nil {
		return nil
	}
	return n.fail("Base64 decoding failed for %q", s)
}
