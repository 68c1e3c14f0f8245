package api

import (
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const refPrefix = "#/components/schemas/"

// schemaNames are the names of the schemas that are not those of their Go types. Clients are generated from the
// document: a schema keeps the name that it was published with.
var schemaNames = map[string]string{
	"CompactionList":   "ListCompactionsOutputBody",
	"ConversationList": "ListConversationsOutputBody",
	"Fault":            "StoreFault",
	"MarkerStats":      "ConversationMarkerStats",
	"MessageList":      "ListMessagesOutputBody",
	"Omission":         "PipelineOmission",
	"RunList":          "ListRunsOutputBody",
	"RunSummary":       "SumRunsOutputBody",
	"SealHead":         "StoreSealHead",
	"Section":          "PipelineSection",
	"StateList":        "ListStateOutputBody",
	"StateValue":       "StateValueInput",
	"TriggerDecision":  "PipelineTriggerDecision",
	"Trimmed":          "ConversationTrimmed",
	"UsageList":        "UsageOutputBody",
	"Verification":     "PipelineVerification",
}

// schemaName names the schema of a type.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	if published, ok := schemaNames[name]; ok {
		return published
	}
	return name
}

// isRequest reports whether a schema is part of a request's body.
func isRequest(name string) bool { return strings.HasSuffix(name, "Input") }

// finishDocument adds to the schemas what huma does not: the description of a type, by the doc tag of its blank field;
// null where an answer may hold it; and that fields may be added to answers.
func finishDocument(doc *huma.OpenAPI) {
	schemas := doc.Components.Schemas
	for name, schema := range schemas.Map() {
		t := schemas.TypeFromRef(refPrefix + name)
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		if blank, ok := t.FieldByName("_"); ok {
			schema.Description = blank.Tag.Get("doc")
		}
		if isRequest(name) {
			continue
		}
		schema.AdditionalProperties = nil
		for _, f := range fieldsOf(t) {
			if property := schema.Properties[f.name]; property != nil && !f.omitEmpty && nullable(t, f) {
				schema.Properties[f.name] = &huma.Schema{
					Description: property.Description, AnyOf: []*huma.Schema{{Ref: property.Ref}, {Type: "null"}},
				}
			}
		}
	}
}

// nullable reports whether a field may be null and huma's schema does not say so: a pointer to a struct.
func nullable(t reflect.Type, f field) bool {
	t = t.FieldByIndex(f.index).Type
	return t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct && t.Elem() != reflect.TypeFor[time.Time]()
}
