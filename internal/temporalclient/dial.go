// Package temporalclient connects to Temporal as the configuration says: a local server, a cluster with
// TLS, or Temporal Cloud with an API key.
package temporalclient

import (
	"context"
	"fmt"
	"log/slog"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"precis/internal/config"
)

// Dial connects to Temporal, and fails if the server does not answer. The SDK logs to logger; tune may change the
// client's options, as telemetry.Telemetry.Temporal does.
func Dial(ctx context.Context, c config.Temporal, logger *slog.Logger,
	tune ...func(*client.Options) error,
) (client.Client, error) {
	o, err := options(c, logger, tune)
	if err != nil {
		return nil, err
	}
	cl, err := client.DialContext(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("Temporal at %s, namespace %s, is not reachable (temporal.address): %w", c.Address,
			c.Namespace, err)
	}
	return cl, nil
}

// Lazy is Dial for a process that has work to do while Temporal is not reachable: the client connects when it is first
// used, and reconnects whenever needed.
func Lazy(c config.Temporal, logger *slog.Logger, tune ...func(*client.Options) error) (client.Client, error) {
	o, err := options(c, logger, tune)
	if err != nil {
		return nil, err
	}
	cl, err := client.NewLazyClient(o)
	if err != nil {
		return nil, fmt.Errorf("set up the connection to Temporal at %s: %w", c.Address, err)
	}
	return cl, nil
}

func options(c config.Temporal, logger *slog.Logger, tune []func(*client.Options) error) (client.Options, error) {
	o := client.Options{
		HostPort:  c.Address,
		Namespace: c.Namespace,
		Logger:    sdklog.NewStructuredLogger(logger),
	}
	if c.APIKey != "" {
		o.Credentials = client.NewAPIKeyStaticCredentials(c.APIKey)
	}
	var err error
	if o.ConnectionOptions.TLS, err = c.TLSConfig(); err != nil {
		return o, err
	}
	for _, change := range tune {
		if err := change(&o); err != nil {
			return o, err
		}
	}
	return o, nil
}
