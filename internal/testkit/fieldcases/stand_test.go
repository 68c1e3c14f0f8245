package fieldcases

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"precis/internal/testkit/apitest"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// stand is the system on which the cases are played: the API on a listener, a worker, and a configuration file for the
// command line.
type stand struct {
	*scenario.System
	url, config, dir string
	mu               sync.Mutex
	refused          map[string]int // requests with too many cache marks, by model
}

func newStand(t *testing.T, dir string, all []fieldCase) *stand {
	t.Helper()
	s := &stand{dir: dir, refused: map[string]int{}}
	script := vendorserver.Script{Lenient: true, Models: map[string][]vendorserver.Answer{}}
	for _, c := range all {
		script.Models[model(c)] = []vendorserver.Answer{{Func: s.answers(t, c), Forever: true}}
	}
	s.System = scenario.New(t, script)
	s.Config.Worker.Concurrency, s.Config.Worker.LLMConcurrency = 32, 32
	s.StartWorker()
	s.url = apitest.Serve(t, s.System)
	file, err := json.Marshal(map[string]any{
		"database_url": s.Config.DatabaseURL,
		"temporal":     map[string]any{"address": s.Config.Temporal.Address, "namespace": s.Config.Temporal.Namespace},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.config = filepath.Join(t.TempDir(), "precis.yaml")
	if err := os.WriteFile(s.config, file, 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// model is the name of the scripted model of a case.
func model(c fieldCase) string { return "model-" + c.ID }

// answers returns what the scripted model of a case answers: its list in order, the last one for ever.
func (s *stand) answers(t *testing.T, c fieldCase) func(vendorserver.Request) vendorserver.Answer {
	t.Helper()
	var list []vendorserver.Answer
	for _, v := range (recipes{c: c}).list(c.Vendor.Answers) {
		if text, ok := v.(string); ok {
			list = append(list, vendorserver.Answer{Text: text})
			continue
		}
		var a vendorserver.Answer
		if err := json.Unmarshal(encode(v), &a); err != nil {
			t.Fatalf("%s: an answer of the vendor: %v", c.ID, err)
		}
		list = append(list, a)
	}
	if len(list) == 0 {
		list = []vendorserver.Answer{{Text: "<summary>SUM: some parts of a house were described.</summary>"}}
	}
	next := 0
	return func(r vendorserver.Request) vendorserver.Answer {
		s.mu.Lock()
		defer s.mu.Unlock()
		if c.Vendor.MaxMarks > 0 && keys(decode(r.Body), "cache_control") > c.Vendor.MaxMarks {
			s.refused[r.Model]++
			return vendorserver.Answer{Error: &vendorserver.Error{Status: 400}}
		}
		a := list[min(next, len(list)-1)]
		next++
		return a
	}
}

// vendorState is what the scripted model of a case was asked.
func (s *stand) vendorState(c fieldCase) object {
	requests := []any{}
	for _, r := range s.Vendor.Requests() {
		if r.Model == model(c) {
			requests = append(requests, decode(r.Body))
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return object{"calls": len(requests), "requests": requests, "refused": s.refused[model(c)]}
}
