package pipeline

import "strings"

// IsMadeText reports whether a text is one that BuildContext puts in place of a missing message: a result for a call
// that has none, a result that comes too late, the note in front of a conversation that begins in the middle. A client
// that sends its context back also sends these.
func IsMadeText(s string) bool {
	return s == noResultText || s == beginsText || strings.HasPrefix(s, lateResultText)
}

// IsShortened reports whether the text of a tool result has the mark of a cut, by trimming or by a valve.
func IsShortened(s string) bool {
	return s == leastText || strings.HasSuffix(s, previewNote) || strings.Contains(s, "[binary omitted") ||
		strings.Contains(s, " chars omitted]…")
}
