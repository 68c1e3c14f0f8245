package api

import (
	"net/http"
	"time"
)

const (
	// writePatience is how long a client may take for one piece of an answer.
	writePatience = 30 * time.Second
	writePiece    = 256 << 10
)

// answer counts what is written, in pieces each of which has its time: a client that reads slowly is served, one that
// reads nothing is let go.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	bytes   int64
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader notes the status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes in pieces.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	written := 0
	for {
		// Not every writer has deadlines: those of tests do not.
		_ = a.control.SetWriteDeadline(time.Now().Add(writePatience))
		n, err := a.ResponseWriter.Write(b[written:min(written+writePiece, len(b))])
		written += n
		a.bytes += int64(n)
		if err != nil || written == len(b) {
			return written, err
		}
	}
}
