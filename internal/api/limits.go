package api

import (
	"net/http"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"precis/internal/config"
)

// limits keep one tenant from using up the server.
type limits struct {
	config config.HTTP
	bodies budget

	mu      sync.Mutex
	tenants map[string]*tenantLimits
}

type tenantLimits struct {
	rate *rate.Limiter
	// open and streams count the requests in progress; guarded by limits.mu.
	open, streams int
	// bodies is the tenant's share of the budget of bodies.
	bodies *semaphore.Weighted
}

// reservation returns an empty reservation of a tenant.
func (l *limits) reservation(tenant string) *reservation {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &reservation{budget: l.bodies, tenant: l.of(tenant).bodies}
}

// of returns the limits of a tenant. The caller holds mu.
func (l *limits) of(tenant string) *tenantLimits {
	t := l.tenants[tenant]
	if t == nil {
		if l.tenants == nil {
			l.tenants = map[string]*tenantLimits{}
		}
		t = &tenantLimits{rate: newRate(l.config), bodies: semaphore.NewWeighted(l.bodies.share)}
		l.tenants[tenant] = t
	}
	return t
}

// limit refuses a request above the tenant's rate or above its number of open requests.
func (s *Server) limit(ctx huma.Context, next func(huma.Context)) {
	t := traitsOf(ctx.Operation())
	if t.public {
		next(ctx)
		return
	}
	r, w := humago.Unwrap(ctx)
	done, p := s.limits.enter(requestOf(r.Context()).tenant, t.stream)
	if p != nil {
		p.write(w, r)
		return
	}
	defer done()
	if r.Method != http.MethodGet {
		r = r.WithContext(s.service.WithQuota(r.Context(), requestOf(r.Context()).tenant))
		ctx = with(ctx, r, w)
	}
	next(ctx)
}

func (l *limits) enter(tenant string, stream bool) (done func(), p *Problem) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(tenant)
	if wait := overRate(t.rate); wait > 0 {
		return nil, problem(codeRateLimited,
			"the tenant sends more than %g requests a second (http.requests_per_second): wait and try again",
			l.config.RequestsPerSecond).after(wait)
	}
	count, most, what := &t.open, l.config.MaxConcurrentRequests, "requests in progress (http.max_concurrent_requests)"
	if stream {
		count, most, what = &t.streams, l.config.MaxEventStreams, "event streams open (http.max_event_streams)"
	}
	if most > 0 && *count >= most {
		return nil, problem(codeRateLimited, "the tenant has %d %s: wait until one has ended", most,
			what).after(time.Second)
	}
	*count++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		*count--
	}, nil
}

func newRate(c config.HTTP) *rate.Limiter {
	if c.RequestsPerSecond <= 0 {
		return rate.NewLimiter(rate.Inf, 0)
	}
	return rate.NewLimiter(rate.Limit(c.RequestsPerSecond), c.Burst)
}

// overRate takes a request's share of the rate, or returns how long to wait for one.
func overRate(r *rate.Limiter) time.Duration {
	reservation := r.Reserve()
	wait := reservation.Delay()
	if wait > 0 {
		reservation.Cancel()
	}
	return wait
}
