package api

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// badKeyRate is how many bad keys an address may send a second over time, badKeyBurst how many at once.
	badKeyRate  = rate.Limit(0.5)
	badKeyBurst = 20
	// maxAddresses bounds the addresses that are remembered.
	maxAddresses = 10_000
)

// badKeys limits the API keys that are refused, by the address that sends them. A valid key is never refused because of
// it: addresses are shared, behind a proxy by everybody.
type badKeys struct {
	mu        sync.Mutex
	addresses map[netip.Prefix]*rate.Limiter
}

// refused counts a bad key of the request's address, and returns how long to wait if there were too many, 0: go on.
func (b *badKeys) refused(r *http.Request) time.Duration {
	from := addressOf(r)
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter := b.addresses[from]
	if limiter == nil {
		if b.addresses == nil {
			b.addresses = map[netip.Prefix]*rate.Limiter{}
		}
		if len(b.addresses) >= maxAddresses {
			b.forget()
		}
		limiter = rate.NewLimiter(badKeyRate, badKeyBurst)
		b.addresses[from] = limiter
	}
	return overRate(limiter)
}

// forget removes the addresses that have sent no bad key for a while, or any half of them if there are too few.
func (b *badKeys) forget() {
	for from, limiter := range b.addresses {
		if limiter.Tokens() >= badKeyBurst {
			delete(b.addresses, from)
		}
	}
	for from := range b.addresses {
		if len(b.addresses) <= maxAddresses/2 {
			return
		}
		delete(b.addresses, from)
	}
}

// addressOf returns the address of the client, of IPv6 its network: a client there has many addresses.
func addressOf(r *http.Request) netip.Prefix {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Prefix{}
	}
	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}
	prefix, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return prefix
}
