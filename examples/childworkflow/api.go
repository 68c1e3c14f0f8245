package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// api is precis's HTTP API: its address, and a key, "" if it needs none.
type api struct{ url, key string }

// problem is the answer to a request that failed.
type problem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

func (p *problem) Error() string { return fmt.Sprintf("precis: %s: %s", p.Code, p.Detail) }

func (p api) post(ctx context.Context, path, idempotencyKey string, in, out any) error {
	return p.send(ctx, http.MethodPost, path, idempotencyKey, in, out)
}

// send makes a request and reads the answer. A request that precis refuses gives a *problem.
func (p api) send(ctx context.Context, method, path, idempotencyKey string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		encoded, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, method, p.url+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if p.key != "" {
		req.Header.Set("Authorization", "Bearer "+p.key)
	}
	if idempotencyKey != "" {
		req.Header.Set("Idempotency-Key", idempotencyKey)
	}
	status, got, err := do(req)
	if err != nil {
		return err
	}
	if status >= http.StatusBadRequest {
		refused := &problem{Code: fmt.Sprintf("status %d", status)}
		_ = json.Unmarshal(got, refused) // a proxy in between may answer in another form
		return refused
	}
	return json.Unmarshal(got, out)
}

func do(req *http.Request) (int, []byte, error) {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = res.Body.Close() }()
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, got, err
}
