package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	uiserver "github.com/temporalio/ui-server/v2/server"
	uiconfig "github.com/temporalio/ui-server/v2/server/config"
	"github.com/temporalio/ui-server/v2/server/server_options"
)

// startUI serves the web UI on loopback. It returns its address and a function that stops it, once the UI answers.
func startUI(ctx context.Context, opts options, srv *server) (string, func(), error) {
	port, err := srv.ports.find(opts.uiPort)
	if err != nil {
		return "", nil, err
	}
	cfg := &uiconfig.Config{
		Host:                "127.0.0.1",
		Port:                port,
		TemporalGRPCAddress: srv.address,
		EnableUI:            true,
		HideLogs:            true,
		DisableNewsFetch:    true,
		// A browser keeps no secure cookie of a plain http address, and every action is refused without the cookie.
		CORS: uiconfig.CORS{CookieInsecure: true},
	}
	if len(opts.namespaces) > 0 {
		cfg.DefaultNamespace = opts.namespaces[0]
	}
	web := uiserver.NewServer(server_options.WithConfigProvider(cfg))
	ended := make(chan error, 1)
	go func() { ended <- web.Start() }()

	url := "http://" + loopback(port)
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if answers(ctx, url+"/healthz") {
			return url, web.Stop, nil
		}
		select {
		case err := <-ended:
			return "", nil, fmt.Errorf("serve the web UI on %s: %w", url, err)
		case <-ctx.Done():
			web.Stop()
			return "", nil, fmt.Errorf("the web UI on %s does not answer: %w", url, ctx.Err())
		case <-tick.C:
		}
	}
}

func answers(ctx context.Context, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
