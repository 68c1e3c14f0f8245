package runreport

import (
	"cmp"
	"slices"

	"precis/internal/config"
	"precis/internal/store"
)

// ModelUsage sums the calls of one model, failed ones too, in tokens. Input counts what the cache had, and took, as
// well.
type ModelUsage struct {
	// Model is "VENDOR/MODEL".
	Model       string `json:"model"`
	Input       int64  `json:"input"`
	CachedInput int64  `json:"cached_input"`
	CacheWrite  int64  `json:"cache_write"`
	Output      int64  `json:"output"`
	Calls       int    `json:"calls"`
}

// Cost is what model calls cost by the prices in the configuration.
type Cost struct {
	// USD is the sum over the models that have a price.
	USD float64 `json:"usd"`
	// NoPriceFor lists the models that have none: their tokens are not in the sum.
	NoPriceFor []string `json:"no_price_for,omitempty"`
}

func usageOf(u store.RunUsage) Usage {
	return Usage{
		Input:       u.Input + u.CachedInput + u.CacheWrite,
		CachedInput: u.CachedInput, CacheWrite: u.CacheWrite, Output: u.Output, Calls: u.Calls, Lost: u.Lost,
	}
}

// ModelsOf gives sums by model in their outer form.
func ModelsOf(list []store.ModelUsage) []ModelUsage {
	out := make([]ModelUsage, len(list))
	for i, u := range list {
		out[i] = ModelUsage{
			Model: u.Vendor + "/" + u.Model, Input: u.Input + u.CachedInput + u.CacheWrite,
			CachedInput: u.CachedInput, CacheWrite: u.CacheWrite, Output: u.Output, Calls: u.Calls,
		}
	}
	return out
}

// CostOf prices model calls; nil where there were calls and none of their models has a price. A vendor tells what
// input it read from its cache and what it wrote there; a price that does not say what that costs takes it as any
// input.
func CostOf(models []ModelUsage, prices map[string]config.Price) *Cost {
	cost := &Cost{}
	priced := false
	for _, u := range models {
		p, known := prices[u.Model]
		if !known {
			cost.NoPriceFor = append(cost.NoPriceFor, u.Model)
			continue
		}
		priced = true
		cached, write := cmp.Or(p.CachedInput, p.Input), cmp.Or(p.CacheWrite, p.Input)
		const million = 1e6
		cost.USD += (float64(u.Input-u.CachedInput-u.CacheWrite)*p.Input + float64(u.CachedInput)*cached +
			float64(u.CacheWrite)*write + float64(u.Output)*p.Output) / million
	}
	if len(models) > 0 && !priced {
		return nil
	}
	slices.Sort(cost.NoPriceFor)
	return cost
}

// Priced is the run with its cost.
func (r Run) Priced(prices map[string]config.Price) Run {
	r.Cost = CostOf(r.Models, prices)
	return r
}

// Group sums runs that ended alike, in the form of the command line and of the HTTP API.
type Group struct {
	// Outcome is "unfinished" for those that have not ended.
	Outcome   string `json:"outcome"`
	ErrorKind string `json:"error_kind"`
	Runs      int    `json:"runs"`
	// Digests counts those whose summary is a digest, Undone those that were taken back.
	Digests int `json:"digests"`
	Undone  int `json:"undone"`
	// MedianMS and P95MS are of the time from start to end, in milliseconds.
	MedianMS int64 `json:"median_ms"`
	P95MS    int64 `json:"p95_ms"`
	Usage    Usage `json:"usage"`
	// Models are the same calls by model.
	Models []ModelUsage `json:"models"`
	Cost   *Cost        `json:"cost"`
}

// Unfinished is the word for runs that have no outcome yet.
const Unfinished = "unfinished"

// GroupsOf gives sums over runs in their outer form, priced.
func GroupsOf(list []store.RunGroup, prices map[string]config.Price) []Group {
	out := make([]Group, len(list))
	for i, g := range list {
		out[i] = Group{
			Outcome: string(g.Outcome), ErrorKind: string(g.ErrorKind), Runs: g.Runs, Digests: g.Digests,
			Undone: g.Undone, MedianMS: g.Median.Milliseconds(), P95MS: g.P95.Milliseconds(), Usage: usageOf(g.Usage),
			Models: ModelsOf(g.Models),
		}
		if g.Outcome == "" {
			out[i].Outcome = Unfinished
		}
		out[i].Cost = CostOf(out[i].Models, prices)
	}
	return out
}

// UsageGroup is a sum over model calls, in tokens. Input counts what the cache had, and took, as well.
type UsageGroup struct {
	// Key is the tenant, the conversation, "vendor/model" or the day (UTC, 2006-01-02).
	Key         string `json:"key"`
	Input       int64  `json:"input"`
	CachedInput int64  `json:"cached_input"`
	CacheWrite  int64  `json:"cache_write"`
	Output      int64  `json:"output"`
	Calls       int    `json:"calls"`
	// Failed counts calls that gave no answer that could be used. Lost counts those whose answer never came: perhaps
	// paid for, and not in the sums.
	Failed int `json:"failed"`
	Lost   int `json:"lost"`
	// Cost is by the configured prices, null where none is configured for any of the models.
	Cost *Cost `json:"cost"`
}

// UsageGroupsOf gives sums over model calls in their outer form, priced.
func UsageGroupsOf(list []store.UsageGroup, prices map[string]config.Price) []UsageGroup {
	out := make([]UsageGroup, len(list))
	for i, g := range list {
		out[i] = UsageGroup{
			Key: g.Key, Input: g.Input + g.CachedInput + g.CacheWrite, CachedInput: g.CachedInput,
			CacheWrite: g.CacheWrite, Output: g.Output, Calls: g.Calls, Failed: g.Failed, Lost: g.Lost,
			Cost: CostOf(ModelsOf(g.Models), prices),
		}
	}
	return out
}
