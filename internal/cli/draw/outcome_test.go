package draw

import (
	"testing"

	"precis/pipeline"
)

// There is a hint for every error kind with which a run can fail.
func TestHints(t *testing.T) {
	t.Parallel()
	for _, kind := range pipeline.ErrorKinds {
		if Hint(kind) == "" && kind != pipeline.Cancelled {
			t.Errorf("there is no hint for %s", kind)
		}
	}
}
