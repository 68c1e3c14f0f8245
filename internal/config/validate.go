package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"precis/internal/contract"
	"precis/pipeline"
)

var (
	logLevels   = []string{"debug", "info", "warn", "error"}
	logFormats  = []string{"text", "json"}
	nativeForms = []string{
		string(contract.NativeOnDemand), string(contract.NativeEdit), string(contract.NativeCompact), "none",
	}
	yesOrNo = []string{"yes", "no"}
)

// rule is what a value must satisfy beyond its type.
type rule struct {
	key string
	// problem is what is wrong and what would be right, "" for a value that satisfies the rule.
	problem string
}

// check refuses values that have the right type and are impossible all the same. It reports all of them.
func check(c Config, origins Origins) error {
	var problems []error
	for _, r := range rules(c) {
		if r.problem != "" {
			problems = append(problems, &Error{Key: r.key, From: origins.Of(r.key), Problem: r.problem})
		}
	}
	return errors.Join(problems...)
}

func rules(c Config) []rule {
	return slices.Concat([]rule{
		{"database_url", databaseURL(c.DatabaseURL)},
		{"temporal.address", unlessEmpty(address, c.Temporal.Address)},
		{"temporal.namespace", notEmpty(c.Temporal.Namespace)},
	}, tlsRules(c.Temporal.TLS), []rule{
		{"http.addr", address(c.HTTP.Addr)},
		{"http.max_body_bytes", atLeast(1024, c.HTTP.MaxBodyBytes)},
		{"http.max_total_body_bytes", atLeast(1024, c.HTTP.MaxTotalBodyBytes)},
		{"http.request_timeout_seconds", atLeast(1, c.HTTP.RequestTimeoutSeconds)},
		{"http.requests_per_second", atLeast(0, c.HTTP.RequestsPerSecond)},
		{"http.burst", atLeast(1, c.HTTP.Burst)},
		{"http.max_concurrent_requests", atLeast(0, c.HTTP.MaxConcurrentRequests)},
		{"http.max_event_streams", atLeast(0, c.HTTP.MaxEventStreams)},
		{"http.max_wait_seconds", atLeast(0, c.HTTP.MaxWaitSeconds)},
		{"http.shutdown_seconds", atLeast(0, c.HTTP.ShutdownSeconds)},
		{"memory.folder", unlessEmpty(absolutePath, c.Memory.Folder)},
		{"audit.signing_key", keyProblem(c.Audit.Signer())},
		{"audit.verify_key", keyProblem(Audit{VerifyKey: c.Audit.VerifyKey}.Verifier())},
	}, vendorRules(c.Vendors), settingRules(c), priceRules(c.Prices), modelRules(c.Models),
		quotaRules(c.Quotas), []rule{
			{"replays.live_per_day", atLeast(0, c.Replays.LivePerDay)},
			{"replays.live_per_run", atLeast(0, c.Replays.LivePerRun)},
			{"worker.task_queue", notEmpty(c.Worker.TaskQueue)},
			{"worker.llm_task_queue", notEmpty(c.Worker.LLMTaskQueue)},
			{"worker.llm_task_queue", differsFrom("worker.task_queue", c.Worker.TaskQueue, c.Worker.LLMTaskQueue)},
			{"worker.concurrency", atLeast(1, c.Worker.Concurrency)},
			{"worker.llm_concurrency", atLeast(1, c.Worker.LLMConcurrency)},
			{"worker.model_timeout_seconds", atLeast(1, c.Worker.ModelTimeoutSeconds)},
			{"worker.max_run_seconds", atLeast(1, c.Worker.MaxRunSeconds)},
			{"worker.drain_seconds", atLeast(0, c.Worker.DrainSeconds)},
			{"worker.metrics_addr", unlessEmpty(address, c.Worker.MetricsAddr)},
			{"log.level", oneOf(logLevels, c.Log.Level)},
			{"log.format", oneOf(logFormats, c.Log.Format)},
		})
}

func vendorRules(vendors map[string]Vendor) []rule {
	var rules []rule
	for _, name := range slices.Sorted(maps.Keys(vendors)) {
		v, key := vendors[name], "vendors."+name
		if problem := vendorName(name); problem != "" {
			rules = append(rules, rule{key, problem})
			continue
		}
		rules = append(rules, rule{key + ".type", vendorType(v.Type)}, rule{key + ".base_url", baseURL(v.BaseURL)})
		for _, pattern := range v.Models {
			rules = append(rules, rule{key + ".models", modelPattern(pattern)})
		}
	}
	return rules
}

func priceRules(prices map[string]Price) []rule {
	var rules []rule
	for _, name := range slices.Sorted(maps.Keys(prices)) {
		p, key := prices[name], "prices."+name
		rules = append(
			rules,
			rule{key, modelID(name)},
			rule{key + ".input", atLeast(0, p.Input)},
			rule{key + ".cached_input", atLeast(0, p.CachedInput)},
			rule{key + ".cache_write", atLeast(0, p.CacheWrite)},
			rule{key + ".output", atLeast(0, p.Output)},
		)
	}
	return rules
}

func modelRules(models map[string]Model) []rule {
	var rules []rule
	for _, name := range slices.Sorted(maps.Keys(models)) {
		m, key := models[name], "models."+name
		rules = append(
			rules,
			rule{key, modelID(name)},
			rule{key + ".window", atLeast(0, m.Window)},
			rule{key + ".max_output", atLeast(0, m.MaxOutput)},
			rule{key + ".token_ratio", tokenRatio(m.TokenRatio)},
		)
		for _, form := range m.NativeCompaction {
			rules = append(rules, rule{key + ".native_compaction", oneOf(nativeForms, form)})
		}
		if m.Thinking != "" {
			rules = append(rules, rule{key + ".thinking", oneOf(yesOrNo, m.Thinking)})
		}
	}
	return rules
}

func quotaRules(q Quotas) []rule {
	rules := []rule{
		{"quotas.storage_bytes", atLeast(0, q.StorageBytes)},
		{"quotas.conversations", atLeast(0, q.Conversations)},
	}
	for _, tenant := range slices.Sorted(maps.Keys(q.Tenants)) {
		own, key := q.Tenants[tenant], "quotas.tenants."+tenant
		rules = append(
			rules,
			rule{key + ".storage_bytes", atLeast(0, own.StorageBytes)},
			rule{key + ".conversations", atLeast(0, own.Conversations)},
		)
	}
	return rules
}

func tlsRules(t TLS) []rule {
	cert, key := t.CertFile+t.CertData != "", t.KeyFile+t.KeyData != ""
	return []rule{
		{"temporal.tls.cert_data", notBoth("temporal.tls.cert_file", t.CertFile, t.CertData)},
		{"temporal.tls.key_data", notBoth("temporal.tls.key_file", t.KeyFile, t.KeyData)},
		{"temporal.tls.ca_data", notBoth("temporal.tls.ca_file", t.CAFile, t.CAData)},
		{"temporal.tls.key_file", when(cert && !key, "is missing: the key of the client certificate")},
		{"temporal.tls.cert_file", when(key && !cert, "is missing: the certificate of the client key")},
	}
}

// settingRules are pipeline's own, and that the vendors which the summarizers name are configured.
func settingRules(c Config) []rule {
	var rules []rule
	for _, err := range joined(c.Settings.Validate()) {
		var wrong *pipeline.SettingError
		if !errors.As(err, &wrong) {
			rules = append(rules, rule{"settings", err.Error()})
			continue
		}
		// The origin of an entry of a list, such as summarizers[1].model, is that of the list.
		key, entry, inList := strings.Cut(wrong.Key, "[")
		problem := wrong.Problem
		if inList {
			problem = "[" + entry + " " + problem
		}
		rules = append(rules, rule{"settings." + key, problem})
	}
	for _, spec := range c.Settings.Summarizers {
		vendor, _, err := spec.Split()
		if err != nil || spec.Model == "self" {
			continue
		}
		_, configured := c.Vendors[vendor]
		rules = append(rules, rule{"settings.summarizers", when(!configured, fmt.Sprintf(
			"names %s, but no vendor %q is configured; configured are %s", spec.Model, vendor,
			strings.Join(slices.Sorted(maps.Keys(c.Vendors)), ", ")))})
	}
	return rules
}

// joined returns the parts of an error made by errors.Join, those of nested ones too.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	many, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	var parts []error
	for _, part := range many.Unwrap() {
		parts = append(parts, joined(part)...)
	}
	return parts
}
