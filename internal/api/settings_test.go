package api

import (
	"testing"

	"precis/internal/service"
)

// What a tenant sets is its own: a key reads and changes the settings of its tenant alone, and only a trusted one the
// budget of a day.
func TestSettingsAreTheTenantsOwn(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	acme, trusted, other := b.newKey("acme", false), b.newKey("acme", true), b.newKey("other", false)
	b.key = acme
	b.send("PUT", "/v1/settings", `{"settings":{"digest":"never"}}`).is(200)
	b.send("PATCH", "/v1/settings", `{"settings":{"tenant_daily_token_budget":5}}`).fails(403,
		service.CodeForbidden).names(t, "body.settings.tenant_daily_token_budget")
	b.send("PUT", "/v1/settings", `{}`).fails(422, service.CodeInvalid)
	b.send("PUT", "/v1/settings", `{"settings":null}`).fails(422, service.CodeInvalid)
	b.send("PUT", "/v1/settings", `{"settings":{"Digest":"always"}}`).fails(422, service.CodeInvalid)
	b.key = trusted
	b.send("PATCH", "/v1/settings", `{"settings":{"tenant_daily_token_budget":5}}`).is(200)
	b.key = acme
	// The budget stays where somebody else's change leaves it alone, and only there.
	b.send("PATCH", "/v1/settings", `{"settings":{"redact":true}}`).is(200)
	b.send("PUT", "/v1/settings", `{"settings":{}}`).fails(403, service.CodeForbidden)
	if got := b.send("GET", "/v1/settings", "").is(200); got.get("tenant") != "acme" ||
		got.get("settings") != `{"digest":"never","redact":true,"tenant_daily_token_budget":5}` {
		t.Errorf("%s", got.body)
	}
	b.key = other
	if got := b.send("GET", "/v1/settings", "").is(200); got.get("tenant") != "other" || got.get("settings") != `{}` ||
		got.get("effective", "digest") != "when_needed" {
		t.Errorf("another tenant sees %s", got.body)
	}
}
