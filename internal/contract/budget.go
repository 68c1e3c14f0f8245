package contract

import "fmt"

// TenantBudget is what a tenant's runs may send and receive in a day and what they have, in tokens.
type TenantBudget struct {
	// Limit is 0 where nothing is bounded.
	Limit int `json:"limit"`
	Used  int `json:"used"`
}

// Left returns what remains, 0 where nothing does or nothing is bounded.
func (b TenantBudget) Left() int { return max(b.Limit-b.Used, 0) }

// Spent reports whether no model may be called any more today.
func (b TenantBudget) Spent() bool { return b.Limit > 0 && b.Used >= b.Limit }

// String returns a sentence for people, which names the setting.
func (b TenantBudget) String() string {
	return fmt.Sprintf("the tenant's runs have used %d of %d tokens today (tenant_daily_token_budget)", b.Used, b.Limit)
}
