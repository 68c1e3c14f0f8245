package pipeline

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// noise gives n bytes that look random and are always the same.
func noise(n int) []byte {
	var out []byte
	for i := uint64(0); len(out) < n; i++ {
		block := sha256.Sum256(binary.BigEndian.AppendUint64(nil, i))
		out = append(out, block[:]...)
	}
	return out[:n]
}

func encoded(n int) string { return base64.StdEncoding.EncodeToString(noise(n)) }

// png is base64 with the header of a PNG.
func png(n int) string {
	return base64.StdEncoding.EncodeToString(append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), noise(n-16)...))
}

func quoted(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestOmitBinary(t *testing.T) {
	t.Parallel()
	const size = 141_312 // 138 KB of 1,024 bytes
	shot := encoded(size)
	jpeg := base64.StdEncoding.EncodeToString(append([]byte{0xff, 0xd8, 0xff, 0xe0}, noise(size-4)...))
	slashed := strings.ReplaceAll(jpeg, "/", `\/`)
	for _, tt := range []struct{ name, in, want string }{
		{"alone", shot, "[binary omitted: ~138 KB]"},
		{"in a sentence", "the image is " + shot + " as asked", "the image is [binary omitted: ~138 KB] as asked"},
		{
			"data URL", `<img src="data:image/png;base64,` + png(2048) + `">`,
			`<img src="data:image/png;base64,[binary omitted: ~2 KB]">`,
		},
		{"short but marked", png(300), "[binary omitted: ~1 KB]"},
		{"base64 for URLs", base64.RawURLEncoding.EncodeToString(noise(4096)), "[binary omitted: ~4 KB]"},
		{"two", "a " + shot + " b " + png(5000), "a [binary omitted: ~138 KB] b [binary omitted: ~5 KB]"},
		{"json", `{"ok":true,"image":"` + shot + `","n":1}`, `{"ok":true,"image":"[binary omitted: ~138 KB]","n":1}`},
		{
			"json in json", quoted(map[string]string{"body": `{"png":"` + png(4096) + `"}`}),
			`{"body":"{\"png\":\"[binary omitted: ~4 KB]\"}"}`,
		},
		{"slashes escaped", `{"jpeg":"` + slashed + `"}`, `{"jpeg":"\/[binary omitted: ~138 KB]"}`},
		{
			"lines of 76", "$ base64 x.bin\n" + wrapped(shot, 76, "\n") + "\n$ ",
			"$ base64 x.bin\n[binary omitted: ~138 KB]\n$ ",
		},
		{
			"lines of 64, then a word", wrapped(encoded(4800), 64, "\r\n") + "\r\nDone.",
			"[binary omitted: ~5 KB]\r\nDone.",
		},
		{
			"lines escaped in json", quoted("out:\n" + wrapped(encoded(4802), 76, "\n") + "\nend"),
			`"out:\n[binary omitted: ~5 KB]\nend"`,
		},
		{"repeated units", strings.Repeat("iVBORw0K", 1000), "[binary omitted: ~6 KB]"},
		{
			"program output", "$ cat x.png\n" + strings.ReplaceAll(string(noise(5000)), "\n", "") + "\n$ ls\n",
			"$ cat x.png\n[binary omitted: ~5 KB]\n$ ls\n",
		},
	} {
		got, n := omitBinary(tt.in)
		if got != tt.want || n == 0 {
			t.Errorf("%s: got %d in %.200q, want %q", tt.name, n, got, tt.want)
		}
		if again, n := omitBinary(got); again != got || n != 0 {
			t.Errorf("%s: a second time found %d more", tt.name, n)
		}
	}
}

func wrapped(s string, width int, lineEnd string) string {
	var lines []string
	for len(s) > width {
		lines, s = append(lines, s[:width]), s[width:]
	}
	return strings.Join(append(lines, s), lineEnd)
}

// What a model may have to read or copy stays.
func TestOmitBinaryLeavesText(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{
		"empty":         "",
		"prose":         strings.Repeat("The quick brown fox jumps over the lazy dog. ", 500),
		"one long word": strings.Repeat("abc", 5000),
		"capitals":      strings.Repeat("A", 5000),
		"rulers":        strings.Repeat("-", 3000) + strings.Repeat("_", 3000) + strings.Repeat("/", 3000),
		"hex":           hex.EncodeToString(noise(5000)),
		"a hash":        "sha256-" + encoded(32),
		"a token":       "eyJhbGciOi." + encoded(600) + "." + encoded(32),
		"a certificate": "-----BEGIN CERTIFICATE-----\n" + wrapped(encoded(1200), 64, "\n") +
			"\n-----END CERTIFICATE-----\n", "a small icon": "data:image/png;base64," + png(150),
		"a long path":   "/" + strings.Repeat("some_Package2/sub-folder/Module1/", 200),
		"han":           strings.Repeat("漢字かな交じり文", 2000),
		"colours":       strings.Repeat("\x1b[31mred\x1b[0m\n", 500),
		"minified code": strings.Repeat("function(e,t){return e.n1(t)&&R.x9.call(this)}", 200),
	} {
		if got, n := omitBinary(s); got != s || n != 0 {
			t.Errorf("%s: %d taken out: %.200q", name, n, got)
		}
	}
}

// Whatever JSON contains the base64, at any depth and beside any text, the result is valid and has the same
// shape, at each depth.
func TestOmitBinaryKeepsJSONValid(t *testing.T) {
	t.Parallel()
	blob := rapid.SampledFrom([]string{
		encoded(3000), png(2000), base64.URLEncoding.EncodeToString(noise(2501)),
		wrapped(encoded(5000), 76, "\n"), strings.ReplaceAll(encoded(3000), "/", `\/`),
	})
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 4).Draw(t, "depth")
		// Beside a text of any kind; where that ends, or begins, in a long word, the base64 may pass for one.
		around, plain := genText(), rapid.Bool().Draw(t, "plain")
		if plain {
			around = rapid.SampledFrom([]string{
				"", "\n", "\\", "C:\\new\\", "\t", "é", "\u2028", "\\u00",
				"data:image/png;base64,",
			})
		}
		text := around.Draw(t, "before") + blob.Draw(t, "blob") + around.Draw(t, "after")
		for range depth {
			if rapid.Bool().Draw(t, "object") {
				text = quoted(map[string]any{"a": 1, "b": text})
			} else {
				text = quoted([]any{text, nil})
			}
			if rapid.Bool().Draw(t, "slashes") {
				text = strings.ReplaceAll(text, "/", `\/`)
			}
		}
		got, n := omitBinary(text)
		if plain && n == 0 {
			t.Fatalf("nothing was found in %s", text)
		}
		for range depth {
			var v any
			if err := json.Unmarshal([]byte(got), &v); err != nil {
				t.Fatalf("not valid: %v\n%s\nwas\n%s", err, got, text)
			}
			switch v := v.(type) {
			case map[string]any:
				got, _ = v["b"].(string)
			case []any:
				got, _ = v[0].(string)
			}
		}
	})
}

func BenchmarkOmitBinary(b *testing.B) {
	for _, kind := range []struct{ name, text string }{
		{"prose", strings.Repeat("The quick brown fox jumps over the lazy dog. ", 20_000)},
		{"code", strings.Repeat("\tif err := s.store.Append(ctx, id, msgs); err != nil {\n", 20_000)},
		{"han", strings.Repeat("漢字かな交じり文", 40_000)},
		{"base64", encoded(700_000)},
	} {
		b.Run(kind.name, func(b *testing.B) {
			b.SetBytes(int64(len(kind.text)))
			for b.Loop() {
				omitBinary(kind.text)
			}
		})
	}
}
