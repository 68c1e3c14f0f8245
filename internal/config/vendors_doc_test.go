package config

import (
	"os"
	"regexp"
	"testing"
)

// TestVendorExamples loads each example of docs/vendors.md.
func TestVendorExamples(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/vendors.md")
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(examples) < 6 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, e := range examples {
		if _, _, err := load(t, string(e[1]), nil); err != nil {
			t.Errorf("%s\n%v", e[1], err)
		}
	}
}
