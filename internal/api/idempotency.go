package api

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/access"
)

const (
	idempotencyHeader = "Idempotency-Key"
	// replayedHeader marks an answer that was kept from an earlier request.
	replayedHeader = "Idempotency-Replayed"
	// extendInterval is how often a long request extends the claim on its key: well within the time that a claim lasts.
	extendInterval = 3 * time.Second
)

// keepAnswer does a request with an idempotency key once: it keeps what a write that went well was answered with, and
// gives that to whoever sends the same request with the same key again. One that failed may be tried again with its
// key. The transactions of the request note under its key that they happened: whatever dies in between, a write that
// cannot be repeated is not.
func (s *Server) keepAnswer(ctx huma.Context, next func(huma.Context)) {
	r, w := humago.Unwrap(ctx)
	t := traitsOf(ctx.Operation())
	key, given := r.Header[idempotencyHeader]
	if !given || r.Method == http.MethodGet || t.unkept || t.public {
		next(ctx)
		return
	}
	q := requestOf(r.Context())
	k := access.KeyedRequest{
		Tenant: q.tenant, Key: strings.Join(key, ","), Request: requestHash(r, q.body), Repeatable: t.repeatable,
		Holder: rand.Text(),
	}
	state, kept, err := s.store.Idempotency.Claim(r.Context(), k)
	if err != nil {
		p := problemOf(r.Context(), err)
		if errors.Is(err, store.ErrInvalid) {
			p = problem(service.CodeInvalid,
				"an idempotency key has 1 to 255 bytes of UTF-8 and no control characters").at("header." +
				idempotencyHeader)
		}
		p.write(w, r)
		return
	}
	switch state {
	case access.KeyOther:
		problem(codeKeyReused, "idempotency key %q was used with another request: use a new key for each request",
			k.Key).at("header."+idempotencyHeader).write(w, r)
	case access.KeyBusy:
		problem(codeKeyBusy, "the request with idempotency key %q is in progress: try again in a moment",
			k.Key).after(time.Second).write(w, r)
	case access.KeyLost:
		problem(codeKeyLost, "the request with idempotency key %q took effect, and its answer was lost in a "+
			"crash: read the current state before you send the request again, with another key", k.Key).write(w, r)
	case access.KeyAnswered:
		for name, value := range kept.Headers {
			w.Header().Set(name, value)
		}
		w.Header().Set(replayedHeader, "true")
		w.WriteHeader(kept.Status)
		_, _ = w.Write(kept.Body)
	default:
		s.doKeyed(ctx, r, w, k, next)
	}
}

// requestHash is the hash of everything by which two requests are the same.
func requestHash(r *http.Request, body []byte) store.Hash {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.Method), []byte(r.URL.EscapedPath()), []byte(r.URL.RawQuery), body} {
		_ = binary.Write(h, binary.BigEndian, uint64(len(part)))
		_, _ = h.Write(part)
	}
	return store.Hash(h.Sum(nil))
}

// doKeyed does a request whose key was claimed. It continues when the client disconnects, so that the answer can be
// given to the client's next try, but no longer waits for the end of a run.
func (s *Server) doKeyed(ctx huma.Context, r *http.Request, w http.ResponseWriter, k access.KeyedRequest,
	next func(huma.Context),
) {
	rec := &recorder{header: w.Header().Clone()}
	release := s.hold(r.Context(), k)
	q := requestOf(r.Context())
	q.client = r.Context()
	lasting, end := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer end(nil)
	defer context.AfterFunc(r.Context(), func() {
		if context.Cause(r.Context()) == errKeyEnded {
			end(errKeyEnded)
		}
	})()
	func() {
		defer release() // after a panic the claim on the key expires
		next(with(ctx, r.WithContext(access.WithKey(lasting, k)), rec))
	}()
	s.settle(r.Context(), k, rec.kept())
	for name, values := range rec.header {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.status)
	_, _ = w.Write(rec.body.Bytes())
}

// hold extends the claim on a key until it is released.
func (s *Server) hold(ctx context.Context, k access.KeyedRequest) (release func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	go func() {
		tick := time.NewTicker(extendInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := s.store.Idempotency.Extend(ctx, k); err != nil && ctx.Err() == nil {
					s.log.Warn("the claim on an idempotency key could not be extended", "error", err)
				}
			}
		}
	}()
	return cancel
}

// recorder holds an answer back until it is stored.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}
