package vendorserver

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"precis/pipeline"
)

// defaultChunkChars is the size of a streamed piece of text, about what the vendors send at once.
const defaultChunkChars = 16

// reply sends one answer, or fails in the scripted way.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, p wire, req Request, a Answer, chunkChars int) {
	if a.Func != nil {
		a = a.Func(req)
	}
	if a.Gate != nil && !s.wait(r, a.Gate.open) {
		return
	}
	if a.DelayMS > 0 && !s.sleep(r, a.DelayMS) {
		return
	}
	switch {
	case a.Hang:
		s.wait(r, nil)
		return
	case a.Close:
		panic(http.ErrAbortHandler) // the server closes the connection without an answer
	case a.Error != nil:
		s.headers(w, a)
		p.writeError(w, *a.Error)
		return
	}

	if a.ChunkChars > 0 {
		chunkChars = a.ChunkChars
	}
	if chunkChars <= 0 {
		chunkChars = defaultChunkChars
	}
	a.Text = a.echo(req) + a.Text
	if a.CloseAfterText != "" {
		a.Text += a.CloseAfterText
	}
	if a.Usage == nil && !a.NoUsage {
		a.Usage = &Usage{Input: req.Tokens, Output: max(1, pipeline.EstimateText(a.allText()))}
	}

	pieces, contentType := a.pieces(p, req, chunkChars)
	if a.ContentType != "" {
		contentType = a.ContentType
	}
	s.headers(w, a)
	w.Header().Set("Content-Type", contentType)
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	s.send(w, r, a, pieces)
}

// pieces are the parts in which the body is sent.
func (a Answer) pieces(p wire, req Request, chunkChars int) (pieces [][]byte, contentType string) {
	if req.Stream {
		contentType = "text/event-stream; charset=utf-8"
	} else {
		contentType = "application/json"
	}
	switch {
	case a.Raw != nil:
		return [][]byte{[]byte(*a.Raw)}, contentType
	case !req.Stream && a.SSEError != nil:
		return [][]byte{p.errorEvent(*a.SSEError)}, contentType
	case !req.Stream:
		return [][]byte{p.whole(req, a)}, contentType
	case a.SSEError != nil:
		return append(p.partial(req, a.Text, chunkChars), p.errorEvent(*a.SSEError)), contentType
	case a.CloseAfterText != "":
		return p.partial(req, a.Text, chunkChars), contentType
	}
	return p.events(req, a, chunkChars), contentType
}

// send writes the pieces up to the byte at which the connection is closed or hangs.
func (s *Server) send(w http.ResponseWriter, r *http.Request, a Answer, pieces [][]byte) {
	flush := http.NewResponseController(w).Flush
	if a.CloseBeforeBody {
		flush() // the connection is closed next
		panic(http.ErrAbortHandler)
	}
	left := -1
	if a.DropAfterBytes > 0 {
		left = a.DropAfterBytes
	} else if a.HangAfterBytes > 0 {
		left = a.HangAfterBytes
	}
	for i, piece := range pieces {
		if i > 0 && a.ChunkDelayMS > 0 && !s.sleep(r, a.ChunkDelayMS) {
			return
		}
		if left >= 0 && len(piece) > left {
			piece = piece[:left]
		}
		if _, err := w.Write(piece); err != nil {
			return // the client closed the connection
		}
		flush() // the next write reports an error
		if left < 0 {
			continue
		}
		if left -= len(piece); left == 0 {
			break
		}
	}
	switch {
	case a.HangAfterBytes > 0:
		s.wait(r, nil)
	case a.DropAfterBytes > 0, a.CloseAfterText != "":
		panic(http.ErrAbortHandler)
	}
}

func (s *Server) headers(w http.ResponseWriter, a Answer) {
	for k, v := range a.Headers {
		w.Header().Set(k, v)
	}
}

// wait waits for c. It reports false if the client or the server closes the connection first.
func (s *Server) wait(r *http.Request, c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

func (s *Server) sleep(r *http.Request, ms int) bool {
	t := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-r.Context().Done():
	case <-s.done:
	}
	return false
}

// echo is the part of the request that is repeated before the text.
func (a Answer) echo(req Request) string {
	var out []string
	if a.EchoSystem {
		out = append(out, req.System)
	}
	if a.EchoLastPrompt {
		out = append(out, req.LastUser)
	}
	if a.EchoMatch != "" {
		out = append(out, regexp.MustCompile(a.EchoMatch).FindAllString(req.Text, -1)...)
	}
	if len(out) == 0 {
		return ""
	}
	return strings.Join(out, "\n") + "\n"
}

// blocks are all blocks of the answer in their order: text, content, tool calls.
func (a Answer) blocks() []Block {
	var out []Block
	if a.Text != "" {
		out = append(out, Block{Type: "text", Text: a.Text})
	}
	out = append(out, a.Content...)
	for _, c := range a.ToolCalls {
		out = append(out, Block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: []byte(c.Arguments)})
	}
	return out
}

func (a Answer) allText() string {
	var b strings.Builder
	for _, x := range a.blocks() {
		b.WriteString(x.Text + x.Thinking + x.Name + string(x.Input))
	}
	return b.String()
}

// chunks cuts a text into pieces of n chars.
func chunks(s string, n int) []string {
	var out []string
	runes := []rune(s)
	for len(runes) > 0 {
		k := min(n, len(runes))
		out = append(out, string(runes[:k]))
		runes = runes[k:]
	}
	return out
}
