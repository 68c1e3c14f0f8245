package rawjson

import (
	"bytes"
	"crypto/sha256"
	"math"
	"slices"
	"strconv"
)

// Fingerprint returns a SHA-256 of the JSON value in native. Two texts have the same fingerprint when a client that
// read the first could have written the second: the order of keys, blanks, escapes and the notation of fractions do
// not matter. Whole numbers are compared digit by digit, so that large ones stay distinct. Of a duplicate key the
// last value counts. Text that is not one JSON value, such as records in lines, is compared byte by byte. The cost is
// linear.
func Fingerprint(native []byte) [sha256.Size]byte {
	if Check(native) != nil {
		return sha256.Sum256(append([]byte{0}, native...))
	}
	f := fingerprinter{b: native}
	return f.value(SkipSpace(native, 0))
}

// fingerprinter reads valid JSON once, from the front.
type fingerprinter struct {
	b  []byte
	at int // behind the value that was read last
}

// value returns the fingerprint of the value that begins at i: one byte for its kind, which keeps kinds apart, and
// its content.
func (f *fingerprinter) value(i int) [sha256.Size]byte {
	switch f.b[i] {
	case '{':
		return f.object(i)
	case '[':
		h := sha256.New()
		_, _ = h.Write([]byte{'['})
		i = SkipSpace(f.b, i+1)
		for f.b[i] != ']' {
			sum := f.value(i)
			_, _ = h.Write(sum[:])
			if i = SkipSpace(f.b, f.at); f.b[i] == ',' {
				i = SkipSpace(f.b, i+1)
			}
		}
		f.at = i + 1
		return [sha256.Size]byte(h.Sum(nil))
	case '"':
		f.at = skipString(f.b, i)
		return hashOf('"', unquote(f.b[i:f.at]))
	}
	f.at = skipValue(f.b, i)
	return hashOf('0', plainNumber(string(f.b[i:f.at])))
}

func (f *fingerprinter) object(i int) [sha256.Size]byte {
	type member struct {
		key, value [sha256.Size]byte
	}
	var members []member
	i = SkipSpace(f.b, i+1)
	for f.b[i] != '}' {
		keyEnd := skipString(f.b, i)
		m := member{key: hashOf('"', unquote(f.b[i:keyEnd]))}
		m.value = f.value(SkipSpace(f.b, SkipSpace(f.b, keyEnd)+1))
		members = append(members, m)
		if i = SkipSpace(f.b, f.at); f.b[i] == ',' {
			i = SkipSpace(f.b, i+1)
		}
	}
	f.at = i + 1
	slices.SortStableFunc(members, func(x, y member) int { return bytes.Compare(x.key[:], y.key[:]) })
	h := sha256.New()
	_, _ = h.Write([]byte{'{'})
	for n, m := range members {
		if n+1 < len(members) && members[n+1].key == m.key {
			continue
		}
		_, _ = h.Write(m.key[:])
		_, _ = h.Write(m.value[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func hashOf(kind byte, s string) [sha256.Size]byte {
	h := sha256.New()
	_, _ = h.Write([]byte{kind})
	_, _ = h.Write([]byte(s))
	return [sha256.Size]byte(h.Sum(nil))
}

// plainNumber returns the spelling that a program which parses numbers as floats gives a number with a fraction or an
// exponent. true, false, null and whole numbers stay as they are.
func plainNumber(s string) string {
	if !bytes.ContainsAny([]byte(s), ".eE") || s == "true" || s == "false" {
		return s
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return s
	}
	if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
