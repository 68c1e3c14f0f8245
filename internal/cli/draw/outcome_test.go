package draw

import (
	"testing"

	"precis/pipeline"
)

// A hint for every kind with which a run can fail; the others end runs in another way.
func TestHints(t *testing.T) {
	t.Parallel()
	for _, kind := range pipeline.ErrorKinds {
		if Hint(kind) == "" && kind != pipeline.Cancelled {
			t.Errorf("nothing is said of what to do about %s", kind)
		}
	}
}
