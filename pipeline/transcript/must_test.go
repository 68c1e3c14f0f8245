package transcript_test

// must returns the result of a stage whose context is never done.
func must[T any](result T, err error) T {
	if err != nil {
		panic(err)
	}
	return result
}
