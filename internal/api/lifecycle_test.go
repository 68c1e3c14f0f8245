package api

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/telemetry"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// A server that is told to stop while a client waits for a run answers with the run as it is; the run goes on, and the
// next server has its end.
func TestStoppingWithARunUnderWay(t *testing.T) {
	t.Parallel()
	gate := vendorserver.NewGate()
	b := newBench(t, options{
		worker: true,
		script: vendorserver.Script{Answers: []vendorserver.Answer{{Text: summaryText, Gate: gate}}},
	})
	t.Cleanup(gate.Open)
	c := b.create("c", `"system":"s","tools":[]`)
	b.add(c, scenario.Turns(3, 400)...)
	type got struct {
		r   reply
		err error
	}
	answered := make(chan got, 1)
	go func() {
		r, err := b.try("POST", c+"/compactions", `{"wait_seconds":120}`)
		answered <- got{r, err}
	}()
	within(t, 20*time.Second, "the model is asked", func() bool { return len(b.Vendor.Requests()) > 0 })
	began := time.Now()
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("stopping took %s", took)
	}
	a := <-answered
	if a.err != nil {
		t.Fatal(a.err)
	}
	run := a.r.is(http.StatusAccepted).get("id")
	if a.r.get("outcome") != "" || a.r.header.Get("Location") != "/v1/runs/"+run {
		t.Errorf("%v %s", a.r.header, a.r.body)
	}
	if _, err := b.try("GET", "/healthz", ""); err == nil {
		t.Error("the server answers after it has stopped")
	}

	gate.Open()
	next := &bench{System: b.System, t: t, log: &lines{}, server: New(Options{Service: b.server.service})}
	next.serve()
	within(t, 30*time.Second, "the run ends",
		func() bool { return next.send("GET", "/v1/runs/"+run, "").is(200).get("outcome") != "" })
	if outcome := next.send("GET", "/v1/runs/"+run, "").get("outcome"); outcome != "applied" {
		t.Errorf("outcome %s", outcome)
	}
}

// A request that is at work when the server is told to stop is finished.
func TestStoppingFinishesRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	entered, leave := make(chan struct{}), make(chan struct{})
	b.server.mux.HandleFunc("GET /slow", func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-leave
		_, _ = w.Write([]byte("done"))
	})
	answered := make(chan reply, 1)
	go func() {
		r, err := b.try("GET", "/slow", "")
		if err != nil {
			t.Error(err)
		}
		answered <- r
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- b.stop() }()
	within(t, 10*time.Second, "the server is stopping", func() bool { return b.server.stopping.Err() != nil })
	close(leave)
	if r := <-answered; string(r.body) != "done" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// One that takes too long is cut off.
func TestStoppingIsBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{config: func(c *config.Config) { c.HTTP.ShutdownSeconds = 0 }})
	entered := make(chan struct{})
	b.server.mux.HandleFunc("GET /stuck", func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
	})
	go func() { _, _ = b.try("GET", "/stuck", "") }()
	<-entered
	if err := b.stop(); err != nil {
		t.Error(err)
	}
}

func TestRequestsHaveNames(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("secret-name", "")
	r := b.send("GET", c, "", requestIDHeader, "the-clients-own").is(200)
	if got := r.header.Get(requestIDHeader); got != "the-clients-own" {
		t.Errorf("id %q", got)
	}
	for _, bad := range []string{"with space", `quote"`, strings.Repeat("x", 200)} {
		if got := b.send("GET", c, "", requestIDHeader, bad).header.Get(requestIDHeader); got == bad || len(got) < 20 {
			t.Errorf("id %q for %q", got, bad)
		}
	}
	p := b.send("POST", c+"/messages", `{"messages":[{"role":"user","content":"private words"}],"if_seq":7}`).fails(409,
		service.CodeStale)
	var line struct {
		RequestID string `json:"request_id"`
		Method    string
		Route     string
		Status    int
		Code      string
		Tenant    string
		MS        *int
	}
	for text := range strings.SplitSeq(b.log.String(), "\n") {
		if strings.Contains(text, p.RequestID) {
			if err := json.Unmarshal([]byte(text), &line); err != nil {
				t.Fatal(err)
			}
		}
	}
	if line.Method != "POST" || line.Route != "/v1/conversations/{id}/messages" || line.Status != 409 ||
		line.Code != "stale_sequence" || line.Tenant != "default" || line.MS == nil {
		t.Errorf("the log has %+v", line)
	}
	if log := b.log.String(); strings.Contains(log, "private words") || strings.Contains(log, "secret-name") {
		t.Errorf("the log tells what was said: %s", log)
	}
}

func TestAPanicIsAnAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	b.server.mux.HandleFunc("GET /panic", func(http.ResponseWriter, *http.Request) { panic("secret inside") })
	b.server.mux.HandleFunc("GET /late", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		panic("too late")
	})
	p := b.send("GET", "/panic", "").fails(500, service.CodeInternal)
	if strings.Contains(p.Detail, "secret") {
		t.Errorf("detail %q", p.Detail)
	}
	if log := b.log.String(); !strings.Contains(log, "secret inside") || !strings.Contains(log, p.RequestID) {
		t.Error("the log does not have the panic under the request's id")
	}
	if _, err := b.try("GET", "/late", ""); err == nil {
		t.Error("half an answer looks whole")
	}
	b.send("GET", "/healthz", "").is(200)
}

func TestPathsThatAreNotThere(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	b.send("GET", "/v1/nothing", "").fails(404, service.CodeNotFound)
	b.send("GET", "/", "").fails(404, service.CodeNotFound)
	r := b.send("DELETE", "/v1/conversations", "")
	r.fails(405, codeMethodNotAllowed)
	if allow := r.header.Get("Allow"); allow != "GET, POST" {
		t.Errorf("Allow %q", allow)
	}
	b.send("POST", "/healthz", "").fails(405, codeMethodNotAllowed)
}

// Ids of any kind, as they are written in a path.
func TestIDsInPaths(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	for id, path := range map[string]string{
		"a/b": "a%2Fb", "a b": "a%20b", "é日": "%C3%A9%E6%97%A5", "100%": "100%25", "a?b#c": "a%3Fb%23c",
		"messages": "messages", "a+b": "a+b", "..x": "..x",
	} {
		r := b.send("POST", "/v1/conversations",
			`{"id":`+quote(id)+`,"format":"anthropic","model":{"vendor":"a","name":"b"}}`).is(201)
		if got := b.send("GET", "/v1/conversations/"+path, "").is(200).get("id"); got != id {
			t.Errorf("%s: id %q", path, got)
		}
		if got := b.send("GET", r.header.Get("Location"), "").is(200).get("id"); got != id {
			t.Errorf("location %s: id %q", r.header.Get("Location"), got)
		}
	}
}

// One trace goes from the request through the workflow and its stages to the vendor, by either way of starting a run.
func TestOneTrace(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"ByHand", "ByAppending"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			spans := tracetest.NewInMemoryExporter()
			tel, err := telemetry.Start(t.Context(), telemetry.Options{Service: "test", Exporter: spans})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tel.Stop(context.Background()) })
			b := newBench(t, options{
				tel: tel, worker: true,
				script: vendorserver.Script{Default: &vendorserver.Answer{Text: summaryText}},
			})
			c := b.create("c", `"system":"s","tools":[],"settings":{"trigger":{"token_limit":3000}}`)
			const trace = "0af7651916cd43dd8448eb211c80319c"
			parent := "00-" + trace + "-b7ad6b7169203331-01"
			var run string
			if way == "ByHand" {
				b.add(c, scenario.Turns(3, 300)...)
				run = b.send("POST", c+"/compactions", `{"wait_seconds":60}`, "Traceparent", parent).is(200).get("id")
			} else {
				r := b.send("POST", c+"/messages", `{"messages":`+list(scenario.Turns(5, 1000)...)+`}`, "Traceparent",
					parent).is(200)
				if r.get("trigger", "fired") != "true" {
					t.Fatalf("nothing fired: %s", r.body)
				}
				run = r.get("run", "id")
				within(t, 60*time.Second, "the run ends",
					func() bool { return b.send("GET", "/v1/runs/"+run, "").get("outcome") != "" })
			}
			if got := b.send("GET", "/v1/runs/"+run, "").get("summarizer"); got != "self" {
				t.Fatalf("summarizer %s", got)
			}
			route := map[string]string{
				"ByHand":      "POST /v1/conversations/{id}/compactions",
				"ByAppending": "POST /v1/conversations/{id}/messages",
			}[way]
			want := []string{
				route, "RunWorkflow:CompactionWorkflow", "RunActivity:Trigger", "RunActivity:Summarise",
				"RunActivity:Reassemble", "HTTP POST",
			}
			within(t, 20*time.Second, "all spans are in the trace", func() bool {
				in := map[string]bool{}
				for _, s := range spans.GetSpans() {
					if s.SpanContext.TraceID().String() == trace {
						in[s.Name] = true
					}
				}
				for _, name := range want {
					if !in[name] {
						return false
					}
				}
				return true
			})
			if got := b.Vendor.Requests()[0].Header.Get("Traceparent"); !strings.Contains(got, trace) {
				t.Errorf("the vendor got trace %q", got)
			}
			noTextIn(t, spans)
			checkMetrics(t, string(b.send("GET", "/metrics", "").is(200).body))
		})
	}
}

// noTextIn checks that no span holds text of the conversation.
func noTextIn(t *testing.T, spans *tracetest.InMemoryExporter) {
	t.Helper()
	for _, s := range spans.GetSpans() {
		for _, a := range s.Attributes {
			if strings.Contains(a.Value.String(), "Request 0") {
				t.Errorf("span %s holds text of the conversation in %s", s.Name, a.Key)
			}
		}
	}
}

// checkMetrics checks the series of one run that applied the summary of the agent's own model.
func checkMetrics(t *testing.T, metrics string) {
	t.Helper()
	for _, line := range []string{
		`precis_compaction_status_total{error_kind="",outcome="applied",stage="reassemble",summarizer="self"`,
		`precis_compaction_stage_seconds_count{error_kind="",outcome="ok",stage="summarise"} 1`,
		`precis_compaction_model_call_seconds_count{error_kind="",summarizer="self",vendor="anthropic"} 1`,
		`precis_compaction_tokens_before_count{outcome="applied",summarizer="self"} 1`,
		`http_server_request_duration_seconds_count{`, `temporal_`,
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("the metrics have no line %s", line)
		}
	}
}
