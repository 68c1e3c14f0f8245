package transcript

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// recentIDs maps the last uuids to a number each, in bounded memory: an id is dropped only after half a million newer
// ones.
type recentIDs struct{ young, old map[[16]byte]int64 }

const recentIDsHalf = 1 << 19

// add stores an id. It returns false if the id is known already.
func (r *recentIDs) add(id string, n int64) bool {
	k := idKey(id)
	if r.young[k] != 0 || r.old[k] != 0 {
		return false
	}
	if r.young == nil || len(r.young) >= recentIDsHalf {
		r.old, r.young = r.young, map[[16]byte]int64{}
	}
	r.young[k] = n
	return true
}

func (r *recentIDs) get(id string) int64 {
	k := idKey(id)
	return max(r.young[k], r.old[k])
}

func idKey(id string) (k [16]byte) {
	if x := strings.ReplaceAll(id, "-", ""); len(id) == 36 && len(x) == 32 && strings.ToLower(x) == x {
		if _, err := hex.Decode(k[:], []byte(x)); err == nil {
			return k
		}
	}
	sum := sha256.Sum256([]byte(id))
	return [16]byte(sum[:16])
}
