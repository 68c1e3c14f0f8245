package db

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestCleanJSON(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		``:                               `{}`,
		` `:                              `{}`,
		`null`:                           `{}`,
		`{}`:                             `{}`,
		`{"a":9007199254740993,"b":1.0}`: `{"a":9007199254740993,"b":1.0}`,
		`{"a":"x\u0000y"}`:               `{"a":"x�y"}`,
		`{"a":["\ud800",{"b\u0000":null,"c":true}]}`: `{"a":["�",{"b�":null,"c":true}]}`,
		// An escaped backslash before u0000 is not an escape of U+0000.
		`{"a":"\\u0000"}`: `{"a":"\\u0000"}`,
	} {
		if got, err := CleanJSON(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", in, got, err, want)
		}
	}
	for _, in := range []string{`[]`, `"x"`, `1`, `{`, `x`} {
		if got, err := CleanJSON(json.RawMessage(in)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s became %s, %v", in, got, err)
		}
	}
}
