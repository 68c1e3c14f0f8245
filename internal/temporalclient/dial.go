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

// Dial connects and makes sure that the server answers. logger takes what the SDK has to say; tune
// may change the client's options, as telemetry.Telemetry.Temporal does.
func Dial(ctx context.Context, c config.Temporal, logger *slog.Logger, tune ...func(*client.Options) error) (client.Client, error) {
	options := client.Options{
		HostPort:  c.Address,
		Namespace: c.Namespace,
		Logger:    sdklog.NewStructuredLogger(logger),
	}
	if c.APIKey != "" {
		options.Credentials = client.NewAPIKeyStaticCredentials(c.APIKey)
	}
	t, err := c.TLSConfig()
	if err != nil {
		return nil, err
	}
	options.ConnectionOptions.TLS = t
	for _, change := range tune {
		if err := change(&options); err != nil {
			return nil, err
		}
	}
	cl, err := client.DialContext(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("Temporal at %s, namespace %s, is not reachable (temporal.address): %w", c.Address, c.Namespace, err)
	}
	return cl, nil
}
