package rawjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in  string
		end int
		err string
	}{
		{`{}`, 2, ""},
		{` [1, -0.5e+3, true, null, "a\u00e9\n"] rest`, 38, ""},
		{`"\ud800"`, 8, ""},
		{"\"\xff\"", 3, ""},
		{`12`, 2, ""},
		{`12 3`, 2, ""},
		{`{"a":1,"a":2}`, 13, ""},
		{``, 0, "ends too early"},
		{`{"a":1`, 0, "ends too early"},
		{`-`, 0, "ends too early"},
		{`01`, 1, ""},
		{`[01]`, 0, "expected a comma"},
		{`[1.]`, 0, "a number is incomplete"},
		{`[-x]`, 0, "a number is incomplete"},
		{`{"a" 1}`, 0, "expected a colon"},
		{`{1:2}`, 0, "expected a key"},
		{`[1 2]`, 0, "expected a comma"},
		{`[1,]`, 0, "expected a value"},
		{`{"a":1,}`, 0, "expected a key"},
		{`[}`, 0, "expected a value"},
		{`trux`, 0, "expected true"},
		{`NaN`, 0, "expected a value"},
		{"\"a\nb\"", 0, "a control character (0x0a)"},
		{`"\x"`, 0, `unknown escape \x`},
		{`"\u12g4"`, 0, "four hexadecimal digits"},
		{strings.Repeat("[", MaxDepth+1), 0, "deeper than 10000"},
		{strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth), 2 * MaxDepth, ""},
	} {
		end, err := Prefix([]byte(c.in))
		name := c.in[:min(len(c.in), 20)]
		if c.err == "" && (err != nil || end != c.end) {
			t.Errorf("%q: end %d, %v; want %d", name, end, err, c.end)
		}
		if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%q: %v; want %q", name, err, c.err)
		}
	}
}

// jsonText draws text that is JSON or nearly so.
func jsonText() *rapid.Generator[string] {
	pieces := rapid.SampledFrom([]string{
		`{`, `}`, `[`, `]`, `,`, `:`, `"a"`, `"`, `\`, `\u00e9`, `\ud83d\ude00`, `0`, `1`, `-`, `.`, `e`, `+`, `true`,
		`null`, ` `, "\n", `"k":`, `{"k":1}`, `[1,2]`, "é", "\xff", "\x00", `12.5e3`,
	})
	return rapid.Custom(func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "sound") {
			b, _ := json.Marshal(jsonValue(3).Draw(t, "value"))
			s := string(b)
			if len(s) > 0 && rapid.IntRange(0, 3).Draw(t, "cut") == 0 {
				s = s[:rapid.IntRange(0, len(s)).Draw(t, "at")]
			}
			return s
		}
		return strings.Join(rapid.SliceOfN(pieces, 0, 12).Draw(t, "pieces"), "")
	})
}

func jsonValue(depth int) *rapid.Generator[any] {
	return rapid.Custom(func(t *rapid.T) any {
		n := 5
		if depth == 0 {
			n = 3
		}
		switch rapid.IntRange(0, n).Draw(t, "kind") {
		case 0:
			return rapid.String().Draw(t, "s")
		case 1:
			return rapid.Float64Range(-1e9, 1e9).Draw(t, "f")
		case 2:
			return rapid.Bool().Draw(t, "b")
		case 3:
			return nil
		case 4:
			return rapid.SliceOfN(jsonValue(depth-1), 0, 4).Draw(t, "a")
		}
		return rapid.MapOfN(rapid.String(), jsonValue(depth-1), 0, 4).Draw(t, "o")
	})
}

// The scanner takes exactly what encoding/json takes.
func TestScannerAgreesWithEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := jsonText().Draw(t, "json")
		got := Check([]byte(in)) == nil
		if want := json.Valid([]byte(in)); got != want {
			t.Fatalf("%q: sound is %v, encoding/json says %v", in, got, want)
		}
	})
}

// It does not matter in which pieces a value comes.
func TestScannerInPieces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := []byte(jsonText().Draw(t, "json"))
		end, want := Prefix(in)
		var s Scanner
		rest, n := in, 0
		var err error
		done := false
		for len(rest) > 0 && !done && err == nil {
			k := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			var took int
			took, done, err = s.Feed(rest[:k])
			n += took
			if !done && err == nil && took != k {
				t.Fatalf("%q: took %d of %d bytes without an end", in, took, k)
			}
			rest = rest[took:]
		}
		if err == nil && !done {
			err = s.Finish()
		}
		if (err == nil) != (want == nil) || n != end {
			t.Fatalf("%q: in pieces %d, %v; whole %d, %v", in, n, err, end, want)
		}
	})
}

func TestUnquoteAndQuote(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{`""`, ""},
		{`"a\"\\\/\b\f\n\r\tz"`, "a\"\\/\b\f\n\r\tz"},
		{`"\u0000"`, "\x00"},
		{`"\uD83D\uDE00!"`, "😀!"},
		{`"\ud83dx"`, "\ufffdx"},
		{`"\ude00"`, "\ufffd"},
		{`"\ud800\ud83d\ude00"`, "\ufffd😀"},
		{"\"\xff\"", "\xff"},
	} {
		if got := Unquote([]byte(c[0])); got != c[1] {
			t.Errorf("unquote(%s) = %q, want %q", c[0], got, c[1])
		}
	}
	if got := string(Quote("<a>&\u2028é\"")); got != "\"<a>&\\u2028é\\\"\"" {
		t.Errorf("quote = %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		if got := Unquote(Quote(s)); got != s {
			t.Fatalf("%q comes back as %q", s, got)
		}
		lit, _ := json.Marshal(s)
		if got := Unquote(lit); got != s {
			t.Fatalf("%s is %q, want %q", lit, got, s)
		}
	})
}

func TestSurgeryFindsWhatEncodingJSONFinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := rapid.MapOfN(rapid.String(), jsonValue(2), 0, 5).Draw(t, "object")
		b, err := json.MarshalIndent(m, rapid.StringMatching(`[ ]{0,2}`).Draw(t, "prefix"),
			rapid.StringMatching(`[ \t]{0,3}`).Draw(t, "indent"))
		if err != nil {
			t.Fatal(err)
		}
		b = append([]byte(" \n"), b...)
		n := 0
		for key, f := range Root(b).Fields() {
			n++
			var got any
			if err := json.Unmarshal(f.Value.Raw(), &got); err != nil {
				t.Fatalf("the value of %q is cut wrongly: %s", key, f.Value.Raw())
			}
			want, _ := json.Marshal(m[string(key)])
			have, _ := json.Marshal(got)
			if !bytes.Equal(want, have) {
				t.Fatalf("the value of %q is %s, want %s", key, have, want)
			}
		}
		if n != len(m) {
			t.Fatalf("%d keys of %d", n, len(m))
		}
		flat := OneLine(b)
		if bytes.ContainsAny(flat, "\n\r") {
			t.Fatalf("oneLine left a line break: %q", flat)
		}
		var x, y bytes.Buffer
		if json.Compact(&x, b) != nil || json.Compact(&y, flat) != nil || !bytes.Equal(x.Bytes(), y.Bytes()) {
			t.Fatalf("oneLine changed the value: %s", flat)
		}
	})
}

// Taking entries out leaves sound JSON with the others in it, untouched and in order.
func TestWithout(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 8).Draw(t, "n")
		space := rapid.SampledFrom([]string{"", " ", "\n  "})
		in := []byte("[")
		for i := range n {
			if i > 0 {
				in = append(in, space.Draw(t, "before")+","...)
			}
			in = append(in, space.Draw(t, "blank")...)
			in = append(in, `"`+string(rune('a'+i))+`"`...)
		}
		in = append(in, space.Draw(t, "end")+"]"...)
		drop := rapid.SliceOfN(rapid.Bool(), n, n).Draw(t, "drop")
		var want []string
		for i := range n {
			if !drop[i] {
				want = append(want, string(rune('a'+i)))
			}
		}
		out := Apply(in, Without(Root(in).Elements(), func(i int) bool { return drop[i] })...)
		var got []string
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatalf("%s without %v is not JSON: %s", in, drop, out)
		}
		if strings.Join(got, ",") != strings.Join(want, ",") {
			t.Fatalf("%s without %v is %s", in, drop, out)
		}
	})
}

func TestDropKeys(t *testing.T) {
	t.Parallel()
	in := []byte(` { "a" : 1 , "b":[2],"a":3, "c" : null } `)
	v := Root(in)
	for _, c := range []struct {
		keep    []string
		out     string
		removed string
	}{
		{[]string{"a", "b", "c"}, `{ "a" : 1 , "b":[2],"a":3, "c" : null }`, ""},
		{[]string{"a"}, `{ "a" : 1,"a":3 }`, "b,c"},
		{[]string{"c"}, `{ "c" : null }`, "a,b,a"},
		{nil, `{  }`, "a,b,a,c"},
	} {
		out, removed := v.KeepKeys(c.keep...)
		if string(out) != c.out || strings.Join(removed, ",") != c.removed {
			t.Errorf("keep %v: %s without %v", c.keep, out, removed)
		}
	}
	if got, ok := v.Lookup("a"); !ok || string(got.Raw()) != "3" {
		t.Errorf("the last value of a duplicate key should count, got %s", got.Raw())
	}
	if _, ok := Root([]byte(`{"a":[1]}`)).Lookup("a", "b"); ok {
		t.Error("found a key in an array")
	}
}
