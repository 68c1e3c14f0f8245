package api

import (
	"bytes"
	"encoding/json"
	"testing"

	"precis/internal/service"
)

func TestTheDocumentTellsWhatMayBeNull(t *testing.T) {
	t.Parallel()
	s := New(Options{Service: &service.Service{}})
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				AdditionalProperties *bool
				Properties           map[string]json.RawMessage
			}
		}
	}
	raw, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	stats := doc.Components.Schemas["Stats"].Properties["marker"]
	if !bytes.Contains(stats, []byte(`"anyOf"`)) || !bytes.Contains(stats, []byte(`"null"`)) ||
		!bytes.Contains(stats, []byte(`"description"`)) {
		t.Errorf("a context's marker is %s", stats)
	}
	if doc.Components.Schemas["Appended"].AdditionalProperties != nil {
		t.Error("no field may be added to an answer")
	}
	if p := doc.Components.Schemas["NewMessagesInput"].AdditionalProperties; p == nil || *p {
		t.Error("a request may hold any field")
	}
}
