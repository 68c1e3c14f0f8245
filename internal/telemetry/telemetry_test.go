package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/client"
)

func start(t *testing.T, o Options) *Telemetry {
	t.Helper()
	tel, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tel
}

func scrape(t *testing.T, tel *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d", w.Code)
	}
	return w.Body.String()
}

// TestMetrics checks the names and labels that dashboards and alerts rely on.
func TestMetrics(t *testing.T) {
	t.Parallel()
	tel := start(t, Options{Service: "test"})
	m := tel.Metrics()
	m.RunEnded(t.Context(), RunEnd{
		Outcome: "applied", Stage: "reassemble", Summarizer: "self", Trigger: "tokens", TokensBefore: 100_000,
		TokensAfter: 10_000, Took: 3 * time.Second,
	})
	m.RunEnded(t.Context(), RunEnd{Outcome: "failed", ErrorKind: "auth", Stage: "summarise", Trigger: "manual"})
	m.StageEnded(t.Context(), "slim", "ok", "", 20*time.Millisecond)
	m.ModelCalled(t.Context(), ModelCall{
		Vendor: "openai", Summarizer: "openai/m", ErrorKind: "timeout",
		Took: time.Second, Input: 100, CachedInput: 60, Output: 7,
	})
	got := scrape(t, tel)
	for _, want := range []string{
		`precis_compaction_status_total{error_kind="",outcome="applied",stage="reassemble",summarizer="self",` +
			`trigger="tokens"} 1`,
		`precis_compaction_status_total{error_kind="auth",outcome="failed",stage="summarise",summarizer="",` +
			`trigger="manual"} 1`,
		`precis_compaction_run_seconds_bucket{outcome="applied",trigger="tokens",le="2.5"} 0`,
		`precis_compaction_run_seconds_bucket{outcome="applied",trigger="tokens",le="5"} 1`,
		`precis_compaction_stage_seconds_count{error_kind="",outcome="ok",stage="slim"} 1`,
		`precis_compaction_tokens_before_sum{outcome="applied",summarizer="self"} 100000`,
		`precis_compaction_tokens_after_sum{outcome="applied",summarizer="self"} 10000`,
		`precis_compaction_ratio_bucket{outcome="applied",summarizer="self",le="0.1"} 1`,
		`precis_compaction_model_call_seconds_count{error_kind="timeout",summarizer="openai/m",vendor="openai"} 1`,
		`precis_compaction_model_tokens_total{kind="input",summarizer="openai/m",vendor="openai"} 40`,
		`precis_compaction_model_tokens_total{kind="cached_input",summarizer="openai/m",vendor="openai"} 60`,
		`precis_compaction_model_tokens_total{kind="output",summarizer="openai/m",vendor="openai"} 7`,
		`go_goroutines `, `process_start_time_seconds `,
	} {
		if !strings.Contains(got, "\n"+want) {
			t.Errorf("there is no line %q", want)
		}
	}
	if strings.Contains(got, `precis_compaction_tokens_before_count{outcome="failed"`) {
		t.Error("a run that changed nothing is in the histogram of sizes")
	}
	if t.Failed() {
		t.Log(regexp.MustCompile(`(?m)^(go|process)_.*\n`).ReplaceAllString(got, ""))
	}
}

// Without an exporter there are no spans, but an incoming trace is passed on.
func TestATraceGoesThrough(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, traced := range []bool{false, true} {
		spans := tracetest.NewInMemoryExporter()
		o := Options{Service: "test"}
		if traced {
			o.Exporter = spans
		}
		tel := start(t, o)
		var got string
		vendor := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter,
			r *http.Request,
		) {
			got = r.Header.Get("Traceparent")
		}))
		t.Cleanup(vendor.Close)
		mux := http.NewServeMux()
		mux.HandleFunc("GET /v1/{id}", func(_ http.ResponseWriter, r *http.Request) {
			req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, vendor.URL, nil)
			if err != nil {
				t.Error(err)
				return
			}
			res, err := (&http.Client{Transport: tel.Transport(http.DefaultTransport)}).Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.Copy(io.Discard, res.Body)
			_ = res.Body.Close()
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/7?q=secret", nil)
		r.Header.Set("Traceparent", parent)
		tel.Server(mux).ServeHTTP(httptest.NewRecorder(), r)
		if !strings.HasPrefix(got, "00-0af7651916cd43dd8448eb211c80319c-") ||
			traced == strings.Contains(got, "b7ad6b7169203331") {
			t.Errorf("traced %t: the vendor got %q", traced, got)
		}
		var names []string
		for _, s := range spans.GetSpans() {
			names = append(names, s.Name)
			for _, a := range s.Attributes {
				if strings.Contains(a.Value.String(), "secret") {
					t.Errorf("span %s has %s: it holds what was searched for", s.Name, a.Key)
				}
			}
		}
		slices.Sort(names)
		if want := []string{"GET /v1/{id}", "HTTP GET"}; traced && !slices.Equal(names, want) {
			t.Errorf("spans %q, want %q", names, want)
		}
		if metrics := scrape(t, tel); !strings.Contains(metrics, `http_route="/v1/{id}"`) ||
			strings.Contains(metrics, "example.com") {
			t.Error("requests are not measured by route, or with the host that the client gave")
		}
	}
}

func TestNoTelemetry(t *testing.T) {
	t.Parallel()
	var tel *Telemetry
	tel.Metrics().RunEnded(t.Context(), RunEnd{})
	tel.Metrics().StageEnded(t.Context(), "", "", "", 0)
	tel.Metrics().ModelCalled(t.Context(), ModelCall{})
	if tel.Transport(http.DefaultTransport) != http.DefaultTransport {
		t.Error("the transport is another one")
	}
	o := client.Options{}
	if err := tel.Temporal(&o); err != nil || o.Interceptors != nil || o.MetricsHandler != nil {
		t.Errorf("%+v, %v", o, err)
	}
	if err := tel.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAProtocolThatIsNotSpokenIsRefused(t *testing.T) {
	t.Setenv(endpointVariable, "http://127.0.0.1:4317")
	t.Setenv(protocolVariable, "grpc")
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "4318") {
		t.Errorf("error %v", err)
	}
}

// Spans are sent to the collector that the environment names.
func TestExport(t *testing.T) {
	arrived := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(collector.Close)
	t.Setenv(endpointVariable, collector.URL)
	tel, err := Start(t.Context(), Options{Service: "precis-test"})
	if err != nil {
		t.Fatal(err)
	}
	tel.Server(http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(),
		httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/x", nil))
	if err := tel.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-arrived:
		if !strings.HasPrefix(got, "/v1/traces ") || !strings.Contains(got, "precis-test") {
			t.Errorf("got %q", got)
		}
	default:
		t.Error("nothing arrived")
	}
}
