package llm

// ClassifyAnswer reads a whole, non-streamed answer that came with status 200. vendor is the vendor's type,
// or its name; when it is neither, the shape of the body decides. The error is a *pipeline.Error, or nil
// when the answer may be a summary.
func ClassifyAnswer(vendor string, body []byte) (Result, error) { return Result{}, nil }
