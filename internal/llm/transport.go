package llm

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// connections is the transport of all clients, so that they share connections.
var connections = func() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	return t
}()

// statusTransport turns every answer without a good status into an error that contains the answer, so that it is read
// in one place for every SDK. That includes redirects: following one would send the conversation and the key to an
// address that nobody configured.
type statusTransport struct{ base http.RoundTripper }

func (t statusTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := t.base.RoundTrip(r)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close() // the body has been read
	// A body that cannot be read to its end is used as far as it was read: the status alone says enough.
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBytes))
	return nil, &httpError{status: res.StatusCode, header: res.Header, body: body}
}

// httpError is an answer with an error status.
type httpError struct {
	status int
	header http.Header
	body   []byte
}

func (e *httpError) Error() string { return fmt.Sprintf("status %d", e.status) }

func hostOf(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Hostname())
}
