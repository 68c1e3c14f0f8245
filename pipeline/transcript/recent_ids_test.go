package transcript

import (
	"fmt"
	"testing"
)

func TestRecentIDs(t *testing.T) {
	t.Parallel()
	var r recentIDs
	for i := range 3 * recentIDsHalf {
		if !r.add(fmt.Sprintf("00000000-0000-4000-8000-%012x", i), int64(i+1)) {
			t.Fatalf("id %d is taken for known", i)
		}
	}
	last := fmt.Sprintf("00000000-0000-4000-8000-%012x", 3*recentIDsHalf-1)
	if r.add(last, 1) || r.get(last) != 3*recentIDsHalf {
		t.Error("the last id is forgotten")
	}
	if len(r.young)+len(r.old) > 2*recentIDsHalf {
		t.Errorf("%d ids are kept", len(r.young)+len(r.old))
	}
	if idKey("A0000000-0000-4000-8000-000000000001") == idKey("a0000000-0000-4000-8000-000000000001") {
		t.Error("ids that differ only in their letters count as one")
	}
}
