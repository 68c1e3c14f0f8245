package convert

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"precis/pipeline"
	"precis/pipeline/transcript/media"
	"precis/pipeline/transcript/rawjson"
	"precis/pipeline/transcript/wire/google"
)

// unsigned replaces the signature of a call that another model made. Gemini 3 and later refuse a call of the current
// turn without a signature, and accept this value in its place:
// https://ai.google.dev/gemini-api/docs/thought-signatures.
const unsigned = `,"thoughtSignature":"skip_thought_signature_validator"`

// google writes contents whose roles alternate. Calls and results have no ids: results are matched by their order,
// which is that of the calls.
func (c *converter) google(all []spoken) [][]byte {
	g := googleWriter{c: c, signs: !strings.Contains(c.model, "gemini-1") && !strings.Contains(c.model, "gemini-2")}
	for _, m := range all {
		c.item = m.item
		role := "user"
		if m.role == pipeline.RoleAssistant {
			role = "model"
		}
		if role != g.role {
			g.flush()
			g.role = role
		}
		for _, p := range c.withoutVendors(m) {
			g.part(p)
		}
	}
	g.flush()
	return g.out
}

// A googleWriter builds one content.
type googleWriter struct {
	c     *converter
	signs bool
	out   [][]byte
	role  string
	// before is the role of the last content that was written.
	before string
	// said and media are parts of the current content: media of results follow all results.
	said, media [][]byte
	results     []openResult
	// calls are the calls of the previous content, in order.
	calls []string
	made  []string // the ids of the calls of the current content
}

type openResult struct {
	id string
	b  []byte
}

func (g *googleWriter) flush() {
	// Results in the order of their calls.
	var parts [][]byte
	for _, id := range g.calls {
		for i, r := range g.results {
			if r.id == id {
				parts = append(parts, r.b)
				g.results = append(g.results[:i:i], g.results[i+1:]...)
				break
			}
		}
	}
	for _, r := range g.results {
		parts = append(parts, r.b)
	}
	parts = append(append(parts, g.media...), g.said...)
	if n := len(g.out); len(parts) > 0 && g.before == g.role { // the content between them was left out
		g.out[n-1] = google.JoinParts(g.out[n-1], google.Wrap(g.role, parts))
		g.calls = append(g.calls, g.made...)
	} else if len(parts) > 0 {
		g.out = append(g.out, google.Wrap(g.role, parts))
		g.calls, g.before = g.made, g.role
	}
	g.said, g.media, g.results, g.made = nil, nil, nil, nil
}

func (g *googleWriter) part(p pipeline.Part) {
	switch p.Kind {
	case pipeline.PartToolCall:
		g.call(p)
	case pipeline.PartToolResult:
		g.result(p)
	default:
		if b := g.c.googlePart(p); b != nil {
			g.said = append(g.said, b)
		}
	}
}

func (g *googleWriter) call(p pipeline.Part) {
	args := bytes.TrimSpace([]byte(p.Input))
	if len(args) == 0 {
		args = []byte(`{}`)
	} else if rawjson.Check(args) != nil || !rawjson.Root(args).IsObject() {
		g.c.lose("tool call arguments", "they are not a JSON object and are put into one under the key \"arguments\"")
		args = fmt.Appendf(nil, `{"arguments":%s}`, rawjson.Quote(p.Input))
	}
	b := fmt.Appendf(nil, `{"functionCall":{"name":%s,"args":%s}`, rawjson.Quote(googleName(p.Name)), args)
	if g.signs && len(g.made) == 0 {
		b = append(b, unsigned...)
	}
	g.said = append(g.said, append(b, '}'))
	g.made = append(g.made, p.CallID)
}

func (g *googleWriter) result(p pipeline.Part) {
	var texts []string
	for _, part := range p.Content {
		switch part.Kind {
		case pipeline.PartText:
			texts = append(texts, part.Text)
			continue
		case pipeline.PartImage, pipeline.PartFile:
			if b := googleMediaPart(part); b != nil && part.Text == "" {
				g.c.lose(string(part.Kind), "a function response contains only text: it follows the results")
				g.media = append(g.media, b)
				texts = append(texts, fmt.Sprintf("[%s: behind the results]", part.Kind))
				continue
			}
		}
		if b := g.c.googlePart(part); b != nil {
			texts = append(texts, rawjson.Root(b).Get("text").Text())
		}
	}
	output := rawjson.Quote(strings.Join(texts, "\n"))
	if len(p.Content) == 1 && p.Content[0].Kind == pipeline.PartText {
		output = literal(p.Content[0])
	}
	g.results = append(g.results, openResult{
		p.CallID,
		google.FunctionResponse("", googleName(p.Name), output, p.IsError),
	})
}

// googlePart writes one part, nil for a part that is left out.
func (c *converter) googlePart(p pipeline.Part) []byte {
	switch p.Kind {
	case pipeline.PartText:
		if strings.TrimSpace(p.Text) == "" {
			return nil
		}
		return google.Text(literal(p))
	case pipeline.PartReasoning:
		c.lose("reasoning", "only the vendor that made it can use it")
		return nil
	case pipeline.PartImage, pipeline.PartFile:
		if p.Text != "" {
			return google.Text(rawjson.Quote(p.Text))
		}
		if b := googleMediaPart(p); b != nil {
			return b
		}
	}
	if s, ok := c.leaveOut(p); ok {
		return google.Text(rawjson.Quote(s))
	}
	return nil
}

// googleMediaPart writes an image or a file, nil if its data are missing.
func googleMediaPart(p pipeline.Part) []byte {
	url := addressOf(p)
	if mediaType, data, ok := media.SplitDataURL(url); ok {
		return fmt.Appendf(nil, `{"inlineData":{"mimeType":%s,"data":%s}}`,
			rawjson.Quote(cmp.Or(mediaType, p.MediaType)), rawjson.Quote(data))
	}
	if !strings.HasPrefix(url, "https://") && !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "gs://") {
		return nil
	}
	b := []byte(`{"fileData":{`)
	if p.MediaType != "" {
		b = fmt.Appendf(b, `"mimeType":%s,`, rawjson.Quote(p.MediaType))
	}
	return fmt.Appendf(b, `"fileUri":%s}}`, rawjson.Quote(url))
}

// maxGoogleName is the maximum length of a function name, in bytes.
const maxGoogleName = 128

// googleName returns a name in the characters that Gemini accepts: letters, digits, '_', '.', ':' and '-', with a
// letter or '_' first.
func googleName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', strings.ContainsRune("_.:-", r):
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "tool"
	}
	if c := name[0]; c != '_' && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
		name = "_" + name
	}
	return shortID(name, maxGoogleName)
}
