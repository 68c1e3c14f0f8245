package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	same := map[string][2]string{
		"KeyOrder":      {`{"a":1,"b":[2]}`, `{"b":[2],"a":1}`},
		"Blanks":        {`{"a": [1, 2 ] }`, "\n{\"a\":[1,2]}"},
		"Escapes":       {`{"t":"<é\u00e9\/\n"}`, `{"t":"\u003cé\u00e9/\u000a"}`},
		"Surrogates":    {`"\ud83d\ude00"`, `"😀"`},
		"KeyEscapes":    {`{"\u0061":1}`, `{"a":1}`},
		"LastKeyCounts": {`{"a":1,"a":2}`, `{"a":2}`},
		"Fractions":     {`[1.0,1e2,0.50]`, `[1,100,0.5]`},
	}
	for name, pair := range same {
		if Fingerprint([]byte(pair[0])) != Fingerprint([]byte(pair[1])) {
			t.Errorf("%s: %s and %s differ", name, pair[0], pair[1])
		}
	}
	other := map[string][2]string{
		"Text":        {`{"t":"a"}`, `{"t":"b"}`},
		"BigNumbers":  {`12345678901234567890`, `12345678901234567891`},
		"NumberText":  {`1`, `"1"`},
		"Order":       {`[1,2]`, `[2,1]`},
		"Null":        {`{"a":null}`, `{}`},
		"Nesting":     {`[[1],2]`, `[[1,2]]`},
		"EmptyKinds":  {`[]`, `{}`},
		"KeyValue":    {`{"a":"b"}`, `{"b":"a"}`},
		"Lines":       {"{}\n{}", "{}\n{} "},
		"TrueAndText": {`true`, `"true"`},
	}
	for name, pair := range other {
		if Fingerprint([]byte(pair[0])) == Fingerprint([]byte(pair[1])) {
			t.Errorf("%s: %s and %s are taken for the same", name, pair[0], pair[1])
		}
	}
}

// Whatever a program reads and writes again has the same fingerprint, unless it rounds numbers.
func TestFingerprintOfRewrittenJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := anyJSON(4).Draw(t, "value")
		first, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(bytes.NewReader(first))
		d.UseNumber()
		var again any
		if err := d.Decode(&again); err != nil {
			t.Fatal(err)
		}
		second, err := json.MarshalIndent(again, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if Fingerprint(first) != Fingerprint(second) {
			t.Fatalf("%s and %s differ", first, second)
		}
	})
}

func anyJSON(depth int) *rapid.Generator[any] {
	leaves := []*rapid.Generator[any]{
		rapid.String().AsAny(), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil),
		rapid.Float64Range(-1e9, 1e9).AsAny(),
	}
	if depth == 0 {
		return rapid.OneOf(leaves...)
	}
	inner := anyJSON(depth - 1)
	return rapid.OneOf(append(leaves,
		rapid.SliceOfN(inner, 0, 4).AsAny(),
		rapid.MapOfN(rapid.StringN(0, 5, -1), inner, 0, 4).AsAny())...)
}

// Deep nesting costs no more than its length.
func TestFingerprintIsLinear(t *testing.T) {
	t.Parallel()
	deep := []byte(strings.Repeat(`{"a":[`, MaxDepth/2) + `"` + strings.Repeat("x", 8<<20) + `"` +
		strings.Repeat(`]}`, MaxDepth/2))
	if Fingerprint(deep) == Fingerprint(deep[:len(deep)-1]) {
		t.Error("the broken one is taken for the whole one")
	}
}

func FuzzFingerprint(f *testing.F) {
	f.Add([]byte(`{"role":"user","content":[{"type":"text","text":"\ud83d"}]}`))
	f.Add([]byte(`{"a":1.5e-7,"a":[true,null]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if Fingerprint(b) != Fingerprint(bytes.Clone(b)) {
			t.Fatal("it is not a function of the bytes")
		}
		if Check(b) == nil && Fingerprint(append([]byte(" "), append(bytes.Clone(b), '\n')...)) != Fingerprint(b) {
			t.Fatal("blanks around it count")
		}
	})
}
