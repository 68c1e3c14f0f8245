package faults

import (
	"google.golang.org/protobuf/reflect/protoreflect"
	"regexp"
)

var marks = regexp.MustCompile(`MARK-\d+`)

// payloadsOf gives all bytes in a message.
func payloadsOf(m protoreflect.Message) [][]byte {
	var out [][]byte
	var walk func(fd protoreflect.FieldDescriptor, v protoreflect.Value)
	walk = func(fd protoreflect.FieldDescriptor, v protoreflect.Value) {
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

var kinds = map[string]string{}
