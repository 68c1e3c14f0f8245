package llm

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"precis/pipeline"

	"github.com/openai/openai-go/v3/responses"
	"github.com/tidwall/gjson"
)

// compactProtocol speaks /responses/compact, which does not stream.
type compactProtocol struct{ *responsesProtocol }

func (p *compactProtocol) streaming([]byte) string { return "" }

func (p *compactProtocol) post(ctx context.Context, _ string, body []byte,
	headers http.Header,
) (*http.Response, error) {
	return p.send(ctx, "responses/compact", body, headers)
}

func (p *compactProtocol) events(*http.Response, *answer) error {
	return errors.New("the endpoint does not stream")
}

func (p *compactProtocol) decode(body []byte) (*answer, error) { return decodeCompacted(body) }

// decodeCompacted reads a compacted window. It is kept whole and in its order, because the vendor says that it must not
// be pruned.
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
