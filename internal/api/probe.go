package api

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/store"
	"precis/internal/temporalclient"
)

const (
	// checkTimeout is how long each check may take.
	checkTimeout = 2 * time.Second
	// checkFresh is how long a result is reused: everybody may ask, and many requests must not become a load.
	checkFresh = time.Second
)

// Probe checks whether precis can work.
type Probe struct {
	store  *store.Store
	client client.Client
	config config.Config

	mu   sync.Mutex
	at   time.Time
	last wire.Ready
}

// NewProbe returns a probe. client may be nil: then Temporal is not configured.
func NewProbe(s *store.Store, c client.Client, cfg config.Config) *Probe {
	return &Probe{store: s, client: c, config: cfg}
}

// Ready checks everything that precis needs to work. It reuses a result of the last second.
func (p *Probe) Ready(ctx context.Context) wire.Ready {
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < checkFresh {
		return p.last
	}
	// The result is for other clients too: it does not depend on this one staying connected.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTimeout)
	defer cancel()
	checks := make([]wire.Check, 3)
	var wg sync.WaitGroup
	wg.Go(func() { checks[0] = p.postgres(ctx) })
	wg.Go(func() { checks[1], checks[2] = p.temporal(ctx) })
	wg.Wait()
	p.last = wire.Ready{Status: "ready", Checks: checks}
	if slices.ContainsFunc(checks, func(c wire.Check) bool { return !c.OK }) {
		p.last.Status = "not_ready"
	}
	p.at = time.Now()
	return p.last
}

func (p *Probe) postgres(ctx context.Context) wire.Check {
	c := wire.Check{Name: "postgres", OK: true}
	if err := p.store.Ping(ctx); err != nil {
		c.OK, c.Detail = false, "PostgreSQL does not answer (database_url)"
	}
	return c
}

func (p *Probe) temporal(ctx context.Context) (temporal, worker wire.Check) {
	temporal, worker = wire.Check{Name: "temporal"},
		wire.Check{Name: "worker", Detail: "not known while Temporal does not answer"}
	if p.client == nil {
		temporal.Detail = "no Temporal is configured (temporal.address)"
		return temporal, worker
	}
	for _, queue := range []string{p.config.Worker.TaskQueue, p.config.Worker.LLMTaskQueue} {
		n, err := temporalclient.Pollers(ctx, p.client, p.config.Temporal.Namespace, queue)
		if err != nil {
			temporal.Detail = "Temporal does not answer (temporal.address), or does not know the namespace " +
				"(temporal.namespace)"
			return temporal, worker
		}
		if n == 0 {
			return wire.Check{Name: "temporal", OK: true},
				wire.Check{Name: "worker", Detail: "no worker polls task queue " + queue +
					": start one with bin/worker"}
		}
	}
	return wire.Check{Name: "temporal", OK: true}, wire.Check{Name: "worker", OK: true}
}
