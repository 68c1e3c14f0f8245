package telemetry

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// escaping writes log records so that a terminal or an editor shows what they hold: characters that cannot be printed,
// such as bidirectional ones, which ids and errors may contain, become \uXXXX. Both formats of records quote their
// texts, so that in JSON the values stay the same. Each call of Write has one whole record.
type escaping struct{ io.Writer }

// Write writes a record.
func (w escaping) Write(record []byte) (int, error) {
	if printable(record) {
		return w.Writer.Write(record)
	}
	escaped := make([]byte, 0, len(record)+64)
	for i := 0; i < len(record); {
		r, size := utf8.DecodeRune(record[i:])
		switch {
		case r == '\n' || r == '\t' || r == utf8.RuneError || unicode.IsPrint(r):
			escaped = append(escaped, record[i:i+size]...)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			escaped = fmt.Appendf(escaped, `\u%04x\u%04x`, high, low)
		default:
			escaped = fmt.Appendf(escaped, `\u%04x`, r)
		}
		i += size
	}
	if _, err := w.Writer.Write(escaped); err != nil {
		return 0, err
	}
	return len(record), nil
}

// printable reports whether a record has only printable ASCII and line breaks, as almost all have.
func printable(record []byte) bool {
	for _, b := range record {
		if (b < ' ' || b > '~') && b != '\n' && b != '\t' {
			return false
		}
	}
	return true
}
