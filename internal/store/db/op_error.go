package db

// OpError is a failed operation of the store. It wraps the errors that callers distinguish.
type OpError struct {
	// Op is what was attempted, such as "read a run".
	Op string
	// Err is why it failed.
	Err error
}

func (e *OpError) Error() string { return e.Op + ": " + e.Err.Error() }
func (e *OpError) Unwrap() error { return e.Err }

// Failed returns an *OpError for an operation that ended with err, nil for nil.
func Failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &OpError{Op: op, Err: err}
}
