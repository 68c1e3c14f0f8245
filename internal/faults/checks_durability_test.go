package faults

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"precis"
	"precis/internal/api/wire"
	"precis/internal/store/runs"
	"precis/pipeline"
)

// durabilityCases are about crashes, races, retries and idempotency.
var durabilityCases = map[string]how{
	"the summarizer rejects the request": {
		says: "No empty summary is stored: the context stays as it was, or the digest is applied. The next " +
			"compaction includes the first summary.",
		fails: true, digest: pipeline.DigestAlways, list: "external",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			m.bySummary(*rounds[0].run, rounds[0].after, "SUM1")
			if m.failedOrDigest(rounds[1], pipeline.BadRequest) {
				m.once(rounds[1].after, "SUM1") // whole, in the digest
			}
			m.bySummary(*rounds[2].run, rounds[2].after, "SUM2")
			p.modelCalls(3)
			if !strings.Contains(p.requests()[2].Text, "SUM1") {
				t.Error("the last request does not have the first summary")
			}
			for _, native := range m.last().Messages {
				if strings.TrimSpace(messageOf(native).text()) == "" {
					t.Errorf("an empty message: %.200s", native)
				}
			}
		},
	},
	"manual and automatic compactions at the same time": {
		says: "Three manual requests and one automatic run are one run: one model call, one marker, and every " +
			"caller gets its result.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("ONE")
			p.modelCalls(1)
			if n := len(m.markers()); n != 1 {
				t.Errorf("%d markers", n)
			}
			all := m.allRuns()
			for _, d := range m.ops("compact") {
				switch {
				case d.res.status == 200 && d.run.ID == all[0].ID:
				// requested after the run had ended
				case d.res.status == 200 && d.run.Outcome == precis.OutcomeSkipped &&
					d.run.Reason == pipeline.NothingAlreadyCompacted:
				case d.res.status == 409 && d.res.code() != "":
				default:
					t.Errorf("answered %d: %.300s", d.res.status, d.res.body)
				}
			}
		},
	},
	"messages arrive while the summary is written": {
		says: "They follow the summary, each once and in order.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			run := m.summarized("SUM")
			m.ordered(m.last(), "SUM", summaryEnd, "u2", "REPLY-MID", "MID-FLIGHT")
			m.once(m.last(), "REPLY-MID", "MID-FLIGHT")
			m.mustContain(m.last(), "u2", "REPLY-MID", "MID-FLIGHT")
			if run.Covers.To > 3 {
				t.Errorf("the summary covers up to message %d", run.Covers.To)
			}
		},
	},
	"a manual compaction during a reply": {
		says: "The compaction is refused without a model call. After the reply it is applied, and the reply is " +
			"stored once.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			if code := rounds[0].res.code(); code != "reply_open" || rounds[0].requests != 0 {
				t.Errorf("answered %q, %d requests", code, rounds[0].requests)
			}
			m.summarized("SUM")
			m.once(m.last(), "FINAL-REPLY")
			m.mustContain(m.last(), "FINAL-REPLY")
			p.modelCalls(1)
		},
	},
	"a rate limit without a body": {
		says: "A rate limit is not an overflow: no run starts.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCalls(0)
			m.unchanged(m.last())
			if n := len(m.allRuns()); n != 0 {
				t.Errorf("%d runs", n)
			}
		},
	},
	"an account without credit": {
		says: "The run fails at once with its own error kind. A compaction by another model works without any " +
			"cleanup.",
		fails: true, digest: pipeline.DigestAlways, list: "external",
		check: func(t *testing.T, p *play) {
			m := p.main()
			rounds := m.compactions()
			m.failedOrDigest(rounds[0], pipeline.Quota)
			if rounds[0].requests != 1 {
				t.Errorf("%d requests before the model was changed", rounds[0].requests)
			}
			m.bySummary(*rounds[1].run, rounds[1].after, "SUM")
			if r := p.requests(); len(r) != 2 || r[1].Model != otherModel {
				t.Errorf("%d requests, the last one to %s", len(r), r[len(r)-1].Model)
			}
		},
	},
	"a summarizer that always fails, over a restart": {
		says: "The number of model calls is bounded, also after a restart of the worker, and the state shows the " +
			"open breaker.",
		fails: true, restarts: true,
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCallsAtMost(9)
			if n := len(m.sent); n != 41 {
				t.Errorf("%d messages were sent", n)
			}
			before, after := m.ops("before_restart"), m.ops("restart_worker")
			if len(before) != 1 || len(after) != 1 {
				t.Fatal("the worker was not restarted")
			}
			kind := pipeline.BadRequest
			if p.policy != pipeline.DigestNever {
				// The digest cannot shrink the context: by the vendor's figures, nearly all of it is the tail.
				kind = pipeline.NoShrink
			}
			for _, d := range []done{before[0], after[0]} {
				if b := d.state.State.Breaker; !b.Open || b.Failures < 3 || b.ErrorKind != kind ||
					d.state.State.Hold == "" {
					t.Errorf("%s: the breaker is open: %v, after %d failures (%s), held because of %q", d.op, b.Open,
						b.Failures, b.ErrorKind, d.state.State.Hold)
				}
			}
			if after[0].requests != before[0].requests {
				t.Error("the model was called after the restart")
			}
		},
	},
	"a vendor that says how long to wait": {
		says: "The next request is not earlier, and transient errors are retried.",
		check: func(t *testing.T, p *play) {
			p.main().summarized("SUM")
			p.modelCalls(3)
			r := p.requests()
			if waited := r[1].At.Sub(r[0].At); waited < 2*time.Second {
				t.Errorf("retried after %s", waited)
			}
		},
	},
	"a client that times out and asks again": {
		says: "No second summary is started, with or without an idempotency key.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			p.modelCalls(1)
			if n := len(m.markers()); n != 1 {
				t.Errorf("%d markers", n)
			}
		},
	},
	"a compaction is cancelled": {
		says: "The context is as before, a late answer is ignored, and the next compaction works.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			if run := m.ops("cancel")[0].run; run.Outcome != precis.OutcomeCancelled {
				t.Errorf("the run is %s", run.Outcome)
			}
			if c := m.ops("wait_idle")[0].after; c.Stats.Marker != nil {
				t.Error("the cancelled run left a marker")
			}
			m.summarized("SUM2")
			m.never(m.last(), "LATE")
			if n := len(m.markers()); n != 1 {
				t.Errorf("%d markers", n)
			}
		},
	},
	"twelve megabytes of tool results": {
		says: "The summary is applied. The workflow history stays small and has no text of the conversation.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			run := m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			history := m.history(run)
			if len(history) > 100_000 || strings.Contains(history, "MARK-TEXT") {
				t.Errorf("the history has %d bytes, with text: %v", len(history),
					strings.Contains(history, "MARK-TEXT"))
			}
		},
	},
	"a prepared summary and a manual compaction": {
		says: "One of the two takes effect, and a low usage figure does not apply the other.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			idle := m.ops("wait_idle")
			if idle[0].requests != 1 || idle[0].state.State.Prepared == "" {
				t.Errorf("%d requests, prepared: %q", idle[0].requests, idle[0].state.State.Prepared)
			}
			by := m.compactions()[0]
			text := textOf(m.last())
			if n := strings.Count(text, "BG") + strings.Count(text, "MAN"); n != 1 ||
				by.run.Outcome != precis.OutcomeApplied {
				t.Errorf("%d summaries in %.500s, the manual run is %s", n, text, by.run.Outcome)
			}
			if !equal(by.after.Messages, m.last().Messages[:len(by.after.Messages)]) ||
				m.last().Stats.Version != by.after.Stats.Version {
				t.Error("the context changed after the manual compaction")
			}
			active := 0
			for _, marker := range m.markers() {
				if marker.Active {
					active++
				} else if marker.Status != runs.MarkerDiscarded {
					t.Errorf("another marker is %s", marker.Status)
				}
			}
			if active != 1 || m.read().State.Prepared != "" {
				t.Errorf("%d active markers, prepared: %q", active, m.read().State.Prepared)
			}
			p.modelCallsAtMost(2)
		},
	},
	"broken streams and invalid bodies": {
		says: "Each is retried, and no partial text is stored.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("GOOD")
			m.never(m.last(), "PARTIAL")
			p.modelCalls(4)
		},
	},
	"a client that sends old messages again": {
		says: "Messages with known ids are not stored twice, and an append to an old version is refused.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			var again wire.Appended
			if err := json.Unmarshal(m.ops("append_again")[0].res.body, &again); err != nil {
				t.Fatal(err)
			}
			if again.Duplicates != 3 || again.FirstSeq != 0 || again.HeadSeq != 3 {
				t.Errorf("the second append: %+v", again)
			}
			appends := m.ops("append")
			if code := appends[len(appends)-1].res.code(); code != "stale_sequence" {
				t.Errorf("the stale message is answered %q", code)
			}
			m.never(m.last(), "STALE")
		},
	},
	"a manual compaction is repeated": {
		says: "Without new messages no model is asked, and the run says so.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			p.modelCalls(1)
			rounds := m.compactions()
			if len(rounds) != 4 {
				t.Fatalf("%d compactions", len(rounds))
			}
			m.bySummary(*rounds[0].run, m.last(), "S1")
			for _, d := range rounds[1:] {
				if d.run.Outcome != precis.OutcomeSkipped || d.run.Reason != pipeline.NothingAlreadyCompacted {
					t.Errorf("the run is %s (%s)", d.run.Outcome, d.run.Reason)
				}
			}
		},
	},
	"an error in place of a summary": {
		says:  "The text of an error is never stored as a summary.",
		fails: true, digest: pipeline.DigestAlways, list: "self",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.failedOrDigest(m.compactions()[0], pipeline.ServerError)
			m.never(m.last(), "trace-4711-failed")
			m.mustContain(m.last(), "u2")
		},
	},
	"a summarizer with a very small window": {
		says: "The request has the user's words and a part of the rest; it is never empty.",
		check: func(t *testing.T, p *play) {
			m := p.main()
			m.summarized("SUM")
			m.mustContain(m.last(), "LAST")
			p.requestsWithin(8000)
			r := p.requests()[0]
			if !strings.Contains(r.Text, "u0") || !strings.Contains(r.Text, "HEAD-") &&
				!strings.Contains(r.Text, "omitted") {
				t.Errorf("the request is %.1000s", r.Text)
			}
		},
	},
	"a worker stops while a summary is written": {
		says:     "The next worker finishes the run, and there is one marker.",
		restarts: true,
		check: func(t *testing.T, p *play) {
			m := p.main()
			if s := m.ops("read_state")[0].state.State; s.Run == "" || s.Marker != nil {
				t.Errorf("while no worker ran: run %q, marker %v", s.Run, s.Marker)
			}
			all := m.allRuns()
			if len(all) != 1 || all[0].Outcome != precis.OutcomeApplied || all[0].Digest {
				t.Fatalf("the runs are %+v", all)
			}
			summary := summaryOf(m.last())
			if n := strings.Count(summary, "FIRST") + strings.Count(summary, "SECOND"); n != 1 ||
				len(m.markers()) != 1 {
				t.Errorf("%d markers, the summary is %.300s", len(m.markers()), summary)
			}
		},
	},
}
