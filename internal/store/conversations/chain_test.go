package conversations

import (
	"encoding/hex"
	"testing"
	"time"
)

// A message's record is recognized in the form of this build and in the one of the builds up to migration 13.
func TestRecordFits(t *testing.T) {
	t.Parallel()
	record := Record{
		Chain: [32]byte{1}, Sums: Sums{Tokens: 30, Chars: 90, Turns: 2}, Chars: 45, Tokens: 15, Bytes: 60,
		Genuine: true, Created: time.UnixMicro(1_790_000_000_000_000).UTC(), SyncChain: []byte{2, 3},
	}
	now := record.Hash()
	before := record.hashForm1()
	other := record
	other.Tokens++
	changed := other.Hash()
	for name, test := range map[string]struct {
		stored []byte
		want   bool
	}{
		"this build":   {now[:], true},
		"form 1":       {before[:], true},
		"other tokens": {changed[:], false},
		"cut off":      {now[:31], false},
		"none":         {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := record.Fits(test.stored); got != test.want {
				t.Errorf("Fits(%x) = %t, want %t", test.stored, got, test.want)
			}
		})
	}
	// Both forms are what databases hold: neither may change.
	for want, got := range map[string]string{
		"0aa080115c286fa53effd411fc1f82423dcebc396b84dac227e3308681dc0158": hex.EncodeToString(now[:]),
		"acbb1b457c8114a437b844cd5db70bdd7d297c6457c6ec3a11db752913714b2f": hex.EncodeToString(before[:]),
	} {
		if got != want {
			t.Errorf("the hash of the record is %s, want %s", got, want)
		}
	}
}
