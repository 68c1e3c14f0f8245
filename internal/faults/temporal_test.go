package faults

import (
	"strings"

	"go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"precis/internal/api/wire"
)

// history returns the workflow history of a run as JSON, followed by the decoded payloads.
func (t *conversation) history(run wire.Run) string {
	t.t.Helper()
	var b strings.Builder
	it := t.sys.Client.GetWorkflowHistory(t.t.Context(), run.WorkflowID, run.TemporalRunID, false,
		enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			t.t.Fatal(err)
		}
		out, err := protojson.Marshal(e)
		if err != nil {
			t.t.Fatal(err)
		}
		b.Write(out)
		for _, payload := range payloadsOf(e.ProtoReflect()) { // base64 in JSON
			b.Write(payload)
		}
	}
	return b.String()
}

// payloadsOf returns all byte fields of a message.
func payloadsOf(m protoreflect.Message) [][]byte {
	var out [][]byte
	walk := func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
		switch fd.Kind() {
		case protoreflect.BytesKind:
			out = append(out, v.Bytes())
		case protoreflect.MessageKind, protoreflect.GroupKind:
			out = append(out, payloadsOf(v.Message())...)
		}
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsList():
			for i := range v.List().Len() {
				walk(fd, v.List().Get(i))
			}
		case fd.IsMap():
			v.Map().Range(func(_ protoreflect.MapKey, x protoreflect.Value) bool {
				walk(fd.MapValue(), x)
				return true
			})
		default:
			walk(fd, v)
		}
		return true
	})
	return out
}
