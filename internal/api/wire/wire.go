// Package wire has the JSON forms of the HTTP API: what a request holds, what it is answered with, and the problem
// document. The command line prints the same forms with --json.
//
// The tags of a field are its documentation in the OpenAPI document: doc says what the field holds, enum, minimum and
// the like say what it may hold, and limit names its maximum, an entry of contract.Limits. A request's body is checked
// against them. A type describes itself by the doc tag of a blank field. The name of a request's type ends in Input.
package wire

import (
	"bytes"
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"precis/internal/contract"
)

// Object is a JSON object that is kept byte for byte.
type Object json.RawMessage

// Schema describes any object.
func (Object) Schema(huma.Registry) *huma.Schema {
	keys := contract.LimitOf("object_keys").Max
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, MaxProperties: &keys}
}

// UnmarshalJSON keeps a copy of the bytes.
func (o *Object) UnmarshalJSON(b []byte) error {
	*o = bytes.Clone(b)
	return nil
}
