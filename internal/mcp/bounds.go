package mcp

import (
	"context"
	"errors"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"precis/internal/contract"
)

// argumentLimits are the limits of the tools' texts by argument, as the HTTP API has them.
var argumentLimits = map[string]string{
	"conversation": "conversation_id", "query": "query", "cursor": "cursor", "name": "note_name", "text": "note",
}

// boundArguments adds the limits of texts to a schema. It panics for a text without one.
func boundArguments(schema *jsonschema.Schema) {
	for name, property := range schema.Properties {
		if property.Type != "string" {
			continue
		}
		limit := contract.LimitOf(argumentLimits[name]).Max
		property.MaxLength = &limit
	}
}

// boundErrors cuts the errors that a client gets, whatever they quote of its request.
func boundErrors(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		var wire *jsonrpc.Error
		switch {
		case errors.As(err, &wire):
			short := *wire
			short.Message, short.Data = cut(wire.Message), nil
			return result, &short
		case err != nil && len(err.Error()) > contract.MaxErrorText:
			return result, errors.New(cut(err.Error()))
		}
		if call, ok := result.(*sdk.CallToolResult); ok && call != nil && call.IsError {
			for _, c := range call.Content {
				if text, ok := c.(*sdk.TextContent); ok {
					text.Text = cut(text.Text)
				}
			}
		}
		return result, err
	}
}

// cut returns at most contract.MaxErrorText bytes of a text.
func cut(text string) string {
	if len(text) <= contract.MaxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:contract.MaxErrorText-len("…")], "") + "…"
}
