package config

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"precis/pipeline"
)

var (
	logLevels   = []string{"debug", "info", "warn", "error"}
	logFormats  = []string{"text", "json"}
	vendorTypes = []string{TypeAnthropic, TypeOpenAI, TypeOpenAIResponses, TypeGoogle, TypeBedrock}
	nativeForms = []string{"on_demand", "edit", "compact", "none"}

	// A vendor's name stands before the slash in VENDOR/MODEL and in the names of metrics and variables.
	vendorName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*$`)
)

// check refuses values that are of the right type and impossible all the same. It reports all of them.
func (l *loader) check(c Config) error {
	var faults []error
	fail := func(key, format string, args ...any) {
		faults = append(faults, &Error{Key: key, From: l.origins.Of(key), Problem: fmt.Sprintf(format, args...)})
	}
	oneOf := func(key, value string, known []string) {
		if !slices.Contains(known, value) {
			fail(key, "is one of %s, not %q", strings.Join(known, ", "), value)
		}
	}
	atLeast := func(key string, value, least int) {
		if value < least {
			fail(key, "is at least %d, not %d", least, value)
		}
	}
	filled := func(key, value string) {
		if value == "" {
			fail(key, "may not be empty")
		}
	}

	if problem := databaseURLProblem(c.DatabaseURL); problem != "" {
		fail("database_url", "%s", problem)
	}
	if c.Temporal.Address != "" {
		if problem := addressProblem(c.Temporal.Address); problem != "" {
			fail("temporal.address", "%s", problem)
		}
	}
	filled("temporal.namespace", c.Temporal.Namespace)
	checkTLS(c.Temporal.TLS, fail)
	if problem := addressProblem(c.HTTP.Addr); problem != "" {
		fail("http.addr", "%s", problem)
	}
	atLeast("http.max_body_bytes", c.HTTP.MaxBodyBytes, 1024)
	atLeast("http.request_timeout_seconds", c.HTTP.RequestTimeoutSeconds, 1)
	if rate := c.HTTP.RequestsPerSecond; rate < 0 || math.IsNaN(rate) || math.IsInf(rate, 0) {
		fail("http.requests_per_second", "is at least 0, not %v", rate)
	}
	atLeast("http.burst", c.HTTP.Burst, 1)
	atLeast("http.max_concurrent_requests", c.HTTP.MaxConcurrentRequests, 0)
	atLeast("http.max_event_streams", c.HTTP.MaxEventStreams, 0)
	atLeast("http.shutdown_seconds", c.HTTP.ShutdownSeconds, 0)

	if f := c.Memory.Folder; f != "" && !filepath.IsAbs(f) {
		fail("memory.folder", "is an absolute path, not %q", f)
	}

	for _, name := range slices.Sorted(maps.Keys(c.Vendors)) {
		v, key := c.Vendors[name], "vendors."+name
		if !vendorName.MatchString(name) {
			fail(key, "a vendor's name is of lower-case letters, digits, dot, hyphen and underscore")
			continue
		}
		if v.Type == "" {
			fail(key+".type", "is missing: one of %s", strings.Join(vendorTypes, ", "))
		} else {
			oneOf(key+".type", v.Type, vendorTypes)
		}
		if v.BaseURL == "" {
			fail(key+".base_url", "is missing: where the API begins, such as http://127.0.0.1:8000/v1")
		} else if u, err := url.Parse(v.BaseURL); err != nil || u.Host == "" ||
			(u.Scheme != "http" && u.Scheme != "https") {
			fail(key+".base_url", "is a URL that begins with http:// or https://, not %q", maskUserinfo(v.BaseURL))
		}
	}
	l.checkSettings(c, fail)
	for _, name := range slices.Sorted(maps.Keys(c.Prices)) {
		p, key := c.Prices[name], "prices."+name
		if vendor, model, ok := strings.Cut(name, "/"); !ok || vendor == "" || model == "" {
			fail(key, "is named VENDOR/MODEL")
		}
		for _, f := range []struct {
			name  string
			value float64
		}{{"input", p.Input}, {"cached_input", p.CachedInput}, {"cache_write", p.CacheWrite}, {"output", p.Output}} {
			if f.value < 0 {
				fail(key+"."+f.name, "is at least 0, not %v", f.value)
			}
		}
	}

	for _, name := range slices.Sorted(maps.Keys(c.Models)) {
		m, key := c.Models[name], "models."+name
		if vendor, model, ok := strings.Cut(name, "/"); !ok || vendor == "" || model == "" {
			fail(key, "is named VENDOR/MODEL")
		}
		atLeast(key+".window", m.Window, 0)
		atLeast(key+".max_output", m.MaxOutput, 0)
		if r := m.TokenRatio; r != 0 && !(r >= 0.5 && r <= 4) { // what pipeline takes from a server's figure
			fail(key+".token_ratio", "is from 0.5 to 4, or 0 for what the table says, not %v", r)
		}
		for _, form := range m.NativeCompaction {
			oneOf(key+".native_compaction", form, nativeForms)
		}
		if m.Thinking != "" {
			oneOf(key+".thinking", m.Thinking, []string{"yes", "no"})
		}
	}

	filled("worker.task_queue", c.Worker.TaskQueue)
	filled("worker.llm_task_queue", c.Worker.LLMTaskQueue)
	if c.Worker.TaskQueue == c.Worker.LLMTaskQueue {
		fail("worker.llm_task_queue", "is a queue of its own, not %q again", c.Worker.TaskQueue)
	}
	atLeast("worker.concurrency", c.Worker.Concurrency, 1)
	atLeast("worker.llm_concurrency", c.Worker.LLMConcurrency, 1)
	atLeast("worker.model_timeout_seconds", c.Worker.ModelTimeoutSeconds, 1)
	atLeast("worker.drain_seconds", c.Worker.DrainSeconds, 0)
	if c.Worker.MetricsAddr != "" {
		if problem := addressProblem(c.Worker.MetricsAddr); problem != "" {
			fail("worker.metrics_addr", "%s", problem)
		}
	}
	oneOf("log.level", c.Log.Level, logLevels)
	oneOf("log.format", c.Log.Format, logFormats)
	return errors.Join(faults...)
}

// checkSettings asks the pipeline, and looks whether the vendors that the summarizers name are there.
func (l *loader) checkSettings(c Config, fail func(key, format string, args ...any)) {
	for _, err := range joined(c.Settings.Validate()) {
		var wrong *pipeline.SettingError
		if !errors.As(err, &wrong) {
			fail("settings", "%s", err)
			continue
		}
		// An entry of a list, such as summarizers[1].model, came with the list.
		key, entry, inList := strings.Cut(wrong.Key, "[")
		if inList {
			fail("settings."+key, "[%s %s", entry, wrong.Problem)
			continue
		}
		fail("settings."+key, "%s", wrong.Problem)
	}
	for _, spec := range c.Settings.Summarizers {
		vendor, _, err := spec.Split()
		if err != nil || spec.Model == "self" {
			continue
		}
		if _, ok := c.Vendors[vendor]; !ok {
			fail("settings.summarizers", "names %s, but no vendor %q is configured; there are %s", spec.Model, vendor,
				strings.Join(slices.Sorted(maps.Keys(c.Vendors)), ", "))
		}
	}
}

// joined gives the parts of an error made by errors.Join.
func joined(err error) []error {
	if err == nil {
		return nil
	}
	if many, ok := err.(interface{ Unwrap() []error }); ok {
		return many.Unwrap()
	}
	return []error{err}
}

func checkTLS(t TLS, fail func(key, format string, args ...any)) {
	for _, p := range []struct{ name, file, data string }{
		{"cert", t.CertFile, t.CertData}, {"key", t.KeyFile, t.KeyData}, {"ca", t.CAFile, t.CAData},
	} {
		if p.file != "" && p.data != "" {
			fail("temporal.tls."+p.name+"_data", "is given as well as temporal.tls.%s_file: one of them", p.name)
		}
	}
	cert, key := t.CertFile+t.CertData != "", t.KeyFile+t.KeyData != ""
	if cert && !key {
		fail("temporal.tls.key_file", "is missing: the key of the client certificate")
	}
	if key && !cert {
		fail("temporal.tls.cert_file", "is missing: the certificate of the client key")
	}
}

// databaseURLProblem looks at the form alone; the database's own client reads the rest. It never repeats the
// value, which holds a password.
func databaseURLProblem(s string) string {
	if s == "" || strings.HasPrefix(s, "postgres://") || strings.HasPrefix(s, "postgresql://") {
		return ""
	}
	if key, _, ok := strings.Cut(s, "="); ok && !strings.Contains(key, ":") {
		return ""
	}
	return "is postgres://USER:PASSWORD@HOST:PORT/DATABASE or host=… dbname=…"
}

func addressProblem(s string) string {
	_, port, err := net.SplitHostPort(s)
	if err == nil {
		if n, perr := strconv.Atoi(port); perr == nil && n >= 0 && n <= 65535 {
			return ""
		}
	}
	return fmt.Sprintf("is HOST:PORT, such as 127.0.0.1:7233, not %q", s)
}
