package api

import (
	"net/http"
	"time"
)

const (
	// writeTimeout is how long a client may take to receive one piece of an answer.
	writeTimeout = 30 * time.Second
	writePiece   = 256 << 10
)

// answer counts what is written. It writes in pieces, each with a timeout: a client that reads slowly gets the whole
// answer, and the connection of a client that reads nothing is closed.
type answer struct {
	http.ResponseWriter
	control *http.ResponseController
	status  int
	bytes   int64
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// WriteHeader records the status.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write writes b in pieces.
func (a *answer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	written := 0
	for {
		// Writers of tests have no deadlines.
		_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout))
		n, err := a.ResponseWriter.Write(b[written:min(written+writePiece, len(b))])
		written += n
		a.bytes += int64(n)
		if err != nil || written == len(b) {
			return written, err
		}
	}
}
