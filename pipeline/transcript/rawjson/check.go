package rawjson

import "errors"

// Prefix reads one JSON value from the front of b and returns its end. With an error it returns the offset of the
// invalid byte.
func Prefix(b []byte) (int, error) {
	var s Scanner
	n, done, err := s.Feed(b)
	if err != nil || done {
		return n, err
	}
	return n, s.Finish()
}

// Check returns an error unless b is one JSON value with only blanks around it.
func Check(b []byte) error {
	end, err := Prefix(b)
	if err != nil {
		return err
	}
	if SkipSpace(b, end) != len(b) {
		return errors.New("unexpected text after the JSON value")
	}
	return nil
}

// SkipSpace returns the index of the first byte at or after i that is not a blank, len(b) when there is none.
func SkipSpace(b []byte, i int) int {
	for i < len(b) && IsSpace(b[i]) {
		i++
	}
	return i
}

// CheckLines returns an error unless b is a sequence of JSON values with only blanks between them.
func CheckLines(b []byte) error {
	for i := SkipSpace(b, 0); i < len(b); i = SkipSpace(b, i) {
		end, err := Prefix(b[i:])
		if err != nil {
			return err
		}
		i += end
	}
	return nil
}
