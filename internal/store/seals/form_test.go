package seals

import (
	"encoding/json"
	"errors"
	"testing"
)

// A seal of another form is reported as such, not as tampering.
func TestSealOfAnotherForm(t *testing.T) {
	t.Parallel()
	for record, want := range map[string]error{
		`{"form":1,"epoch":0}`: nil,
		`{"form":2,"epoch":0}`: ErrForm,
		`{"epoch":0}`:          ErrForm,
	} {
		if _, err := (Seal{N: 3, Record: json.RawMessage(record)}).Rows(); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", record, err, want)
		}
	}
}
