package transcript

// What the tests of the package transcript_test need of its inside.
const (
	HoldBytes     = holdBytes
	MaxNoteKinds  = maxNoteKinds
	SourceMiniSWE = sourceMiniSWE
)

// HoldAtMost bounds what the decoder holds back, in bytes, so that a test need not read a large file.
func (d *Decoder) HoldAtMost(hold, logs int) {
	switch src := d.src.(type) {
	case *documents:
		src.hold, src.logs = hold, logs
	case *claudeSession:
		src.hold = hold
	case *jsonLines:
		switch r := src.r.(type) {
		case *piSession:
			r.hold = hold
		case *geminiSession:
			r.hold = hold
		}
	}
}
