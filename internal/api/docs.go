package api

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"net/http"
	"sync"
)

//go:embed docs.html
var docsHTML string

var docsTemplate = template.Must(template.New("docs").Parse(docsHTML))

// docs serves the OpenAPI document as a page. The page is made here and loads nothing, so that it can be read without
// internet access.
func (s *Server) docs() {
	page := sync.OnceValues(func() ([]byte, error) {
		var b bytes.Buffer
		err := docsTemplate.Execute(&b, newDocsPage(s.api.OpenAPI()))
		return b.Bytes(), err
	})
	s.mux.HandleFunc("GET /docs", func(w http.ResponseWriter, r *http.Request) {
		html, err := page()
		if err != nil {
			problemOf(r.Context(), fmt.Errorf("make the page of the API: %w", err)).write(w, r)
			return
		}
		w.Header().Set("Content-Security-Policy",
			"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action "+
				"'none'")
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(html)
	})
}
