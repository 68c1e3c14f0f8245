package pipeline

import "strings"

// ownResult reports whether a part is the result of one of the agent's tools. A result inside an assistant message is
// the vendor's, with encrypted content that must be sent back unchanged. But some agents store a call and its result as
// one message, and their results have the type "tool_result".
func ownResult(m *Message, p Part) bool {
	return p.Kind == PartToolResult && (m.Role != RoleAssistant || p.Type == "tool_result")
}

// resultView is a tool result with the edits so far applied.
type resultView struct {
	contents []contentView
	// whole reports that one text is the whole result.
	whole   bool
	dropped bool
}

// contentView is one piece of a tool result: text, or another kind of part.
type contentView struct {
	part    Part
	text    string
	isText  bool
	edited  bool
	dropped bool // dropped by an edit
}

// viewResult returns the view of a part with its own edits.
func viewResult(p Part, edits []Edit) resultView {
	var view resultView
	for _, c := range p.Content {
		view.contents = append(view.contents, contentView{part: c, text: c.Text, isText: c.Kind == PartText})
	}
	// One piece is the whole: then a single edit says it all.
	view.whole = len(p.Content) == 1
	for _, e := range edits {
		switch {
		case e.Op == EditDrop && e.Content < 0:
			view.dropped = true
		case e.Content < 0:
			view.contents = []contentView{{text: e.Text, isText: true, edited: true}}
			view.whole = true
		case e.Content < len(view.contents):
			view.contents[e.Content] = contentView{text: e.Text, isText: true, edited: true, dropped: e.Op == EditDrop}
		}
	}
	return view
}

// edits returns the edits that turn the stored part into the view.
func (v resultView) edits(part int) []Edit {
	var edits []Edit
	for i, c := range v.contents {
		switch {
		case !c.edited:
			continue
		case c.dropped:
			edits = append(edits, Edit{Part: part, Content: i, Op: EditDrop})
			continue
		case v.whole:
			i = -1
		}
		edits = append(edits, Edit{Part: part, Content: i, Op: EditReplace, Text: c.text})
	}
	return edits
}

// text returns the result as one text. ok is false if part of it is not text.
func (v resultView) text() (text string, ok bool) {
	if len(v.contents) == 1 {
		return v.contents[0].text, v.contents[0].isText
	}
	texts := make([]string, 0, len(v.contents))
	for _, c := range v.contents {
		switch {
		case !c.isText:
			return "", false
		case !c.dropped:
			texts = append(texts, c.text)
		}
	}
	return strings.Join(texts, "\n"), true
}

// omitBinaries removes base64, and with media also images and files, and counts them. Texts that we wrote are skipped:
// the rest of a cut text may look like binary although the text did not.
func (v *resultView) omitBinaries(media bool) int {
	binaries := 0
	for i, c := range v.contents {
		var text string
		var n int
		switch {
		case c.edited:
		case c.isText:
			text, n = omitBinary(c.text)
		case media && c.part.Bytes > 0 && c.part.Text == "" && (c.part.Kind == PartImage || c.part.Kind == PartFile):
			text, n = renderBinary(c.part)
		}
		if n > 0 {
			v.contents[i] = contentView{text: text, isText: true, edited: true}
			binaries += n
		}
	}
	return binaries
}

// previewResult returns the preview of a tool result over limit chars. ok is false if the text is not over the limit,
// is a preview already, or would not get smaller: fewer chars can be more tokens where the note is most of them.
func previewResult(text string, limit int) (preview string, ok bool) {
	total := Chars(text)
	if total <= limit || strings.HasSuffix(text, previewNote) {
		return "", false
	}
	head := min(previewHeadChars, max(limit, 0)/2)
	preview = text[:byteOffset(text, total, head)] + "\n" +
		strings.TrimSuffix(truncatedMarker(total-head), " chars]") + previewNote
	size := Chars(preview)
	const clearly = 8 // times as long as its preview, a text has more tokens
	return preview, size < total && (total > clearly*size || EstimateText(preview) < EstimateText(text))
}

// leastText replaces a text that is cut completely, one token: some APIs refuse an empty text.
const leastText = "…"

// markerTokens and markerChars are about the size of the marker of a cut, in tokens and in chars.
const (
	markerTokens = 9
	markerChars  = 25
)

// cutToTokens keeps both ends of a text of size tokens, so that it has at most limit tokens as count counts them, or is
// leastText. It also returns the number of tokens of the result.
func cutToTokens(text string, size, limit int, count func(string) int) (short string, tokens int) {
	chars := Chars(text)
	aim := func(keep, limit, size int) int { return int(float64(keep) * float64(limit) / float64(size) * 0.98) }
	keep := aim(chars, limit, size)
	if limit > 2*markerTokens {
		keep = aim(chars, limit-markerTokens, size) + markerChars
	}
	for keep = min(keep, chars-1); keep > 0; keep = min(keep-1, aim(keep, limit, tokens)) {
		// Tokens are not spread evenly: cut, measure, and cut a little more.
		short = headAndTailCounted(text, chars, keep)
		if tokens = count(short); tokens <= limit {
			return short, tokens
		}
	}
	return leastText, 1
}
