package runreport

import (
	"cmp"
	"slices"

	"precis/internal/api/wire"
	"precis/internal/config"
	"precis/internal/store/modelcalls"
	"precis/internal/store/runs"
)

func usageOf(u runs.Usage) wire.RunUsage {
	return wire.RunUsage{
		Input:       u.Input + u.CachedInput + u.CacheWrite,
		CachedInput: u.CachedInput, CacheWrite: u.CacheWrite, Output: u.Output, Calls: u.Calls, Lost: u.Lost,
	}
}

// ModelsOf returns sums by model in the form of the HTTP API.
func ModelsOf(list []runs.ModelUsage) []wire.RunModelUsage {
	out := make([]wire.RunModelUsage, len(list))
	for i, u := range list {
		out[i] = wire.RunModelUsage{
			Model: u.Vendor + "/" + u.Model, Input: u.Input + u.CachedInput + u.CacheWrite,
			CachedInput: u.CachedInput, CacheWrite: u.CacheWrite, Output: u.Output, Calls: u.Calls,
		}
	}
	return out
}

// CostOf returns the cost of model calls, nil if there were calls and none of their models has a price. Cached input
// and cache writes have the price of other input if the model has no price of its own for them.
func CostOf(models []wire.RunModelUsage, prices map[string]config.Price) *wire.RunCost {
	cost := &wire.RunCost{}
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

// Priced returns the run with its cost.
func Priced(r wire.Run, prices map[string]config.Price) wire.Run {
	r.Cost = CostOf(r.Models, prices)
	return r
}

// Unfinished is the outcome in counts of runs that have not ended.
const Unfinished = "unfinished"

// GroupsOf returns sums over runs in the form of the HTTP API, with their cost.
func GroupsOf(list []runs.Group, prices map[string]config.Price) []wire.RunGroup {
	out := make([]wire.RunGroup, len(list))
	for i, g := range list {
		out[i] = wire.RunGroup{
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

// UsageGroupsOf returns sums over model calls in the form of the HTTP API, with their cost.
func UsageGroupsOf(list []modelcalls.UsageGroup, prices map[string]config.Price) []wire.RunUsageGroup {
	out := make([]wire.RunUsageGroup, len(list))
	for i, g := range list {
		out[i] = wire.RunUsageGroup{
			Key: g.Key, Input: g.Input + g.CachedInput + g.CacheWrite, CachedInput: g.CachedInput,
			CacheWrite: g.CacheWrite, Output: g.Output, Calls: g.Calls, Failed: g.Failed, Lost: g.Lost,
			Cost: CostOf(ModelsOf(g.Models), prices),
		}
	}
	return out
}
