package mcp

import (
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// schemas caches the resolved schemas of the tools: over HTTP each request has a server of its own.
var schemas = sdk.NewSchemaCache()

// inputs caches the schemas of the tools' arguments by inputKey.
var inputs sync.Map

// inputKey names a tool of a server; bound servers are for one conversation.
type inputKey struct {
	tool  string
	bound bool
}

// inputOf returns the schema of a tool's arguments. Unless the server is bound to a conversation, the arguments name
// one.
func inputOf[In any](name string, bound bool) *jsonschema.Schema {
	key := inputKey{name, bound}
	if known, ok := inputs.Load(key); ok {
		if schema, ok := known.(*jsonschema.Schema); ok {
			return schema
		}
	}
	schema, err := jsonschema.For[In](nil)
	if err != nil {
		panic(err) // In is one of the types of tools.go, which have schemas
	}
	const conversation = "conversation"
	if bound {
		delete(schema.Properties, conversation)
		schema.PropertyOrder = nil
	} else {
		schema.Required = append(schema.Required, conversation)
	}
	boundArguments(schema)
	kept, _ := inputs.LoadOrStore(key, schema)
	schema, _ = kept.(*jsonschema.Schema)
	return schema
}
