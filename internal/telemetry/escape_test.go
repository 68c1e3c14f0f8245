package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode"

	"precis/internal/config"
	"precis/internal/telemetry"
)

// No text in a log record can act on a terminal or hide what the record says, and none is lost in JSON.
func TestLogsEscape(t *testing.T) {
	t.Parallel()
	const odd = "a\x1b[31m\x00\x7f\u0085\u009b31m\u202eb\u2066c\u200d\ufeff\u2028\u2029\U000e0041\r\n\u00a0z é 🙂"
	for _, format := range []string{"text", "json"} {
		var b bytes.Buffer
		log := telemetry.Logger(&b, config.Log{Level: "info", Format: format})
		log.With("with"+odd, odd).WithGroup("g"+odd).Info(odd, "conversation", odd, "error", errors.New(odd),
			"list", []string{odd})
		line := b.String()
		if strings.Count(line, "\n") != 1 {
			t.Errorf("%s: more than a line: %q", format, line)
		}
		for _, r := range strings.TrimSuffix(line, "\n") {
			if !unicode.IsPrint(r) {
				t.Errorf("%s: contains %U: %q", format, r, line)
			}
		}
		if !strings.Contains(line, "é 🙂") {
			t.Errorf("%s: printable characters are escaped: %s", format, line)
		}
		if format != "json" {
			continue
		}
		var record map[string]any
		if err := json.Unmarshal(b.Bytes(), &record); err != nil || record["msg"] != odd || record["with"+odd] != odd {
			t.Errorf("%v: %s", err, line)
		}
	}
}
