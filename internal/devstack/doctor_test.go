package devstack

import (
	"strings"
	"testing"
)

func TestDoctor(t *testing.T) {
	t.Parallel()

	t.Run("FindsAllThatTheTestsNeed", func(t *testing.T) {
		t.Parallel()
		findings := Doctor(t.Context(), Options{Dir: emptyDir(t)})
		if len(findings) != 5 {
			t.Errorf("found %+v", findings)
		}
		for _, f := range findings {
			if !f.OK || f.Detail == "" || f.Mend != "" {
				t.Errorf("found %+v", f)
			}
		}
	})
	t.Run("LooksAtGoUntilTheServerIsBuilt", func(t *testing.T) {
		t.Parallel()
		var names []string
		for _, f := range Doctor(t.Context(), Options{Dir: t.TempDir() + "/none/yet"}) {
			names = append(names, f.Name)
			if f.Name == "disk space" && !strings.Contains(f.Detail, "4.0 needed") {
				t.Errorf("found %+v", f)
			}
		}
		if got := strings.Join(names, ", "); !strings.Contains(got, "Go, to build") {
			t.Errorf("looked at %s", got)
		}
	})
	t.Run("LooksAtWhatIsConfigured", func(t *testing.T) {
		t.Parallel()
		port, err := freePort(0)
		if err != nil {
			t.Fatal(err)
		}
		findings := Doctor(t.Context(), Options{
			DatabaseURL: "postgres://u:secret@" + loopback(port) + "/d", TemporalAddress: loopback(port),
		})
		if len(findings) != 2 {
			t.Errorf("found %+v", findings)
		}
		for _, f := range findings {
			if f.OK || f.Mend == "" || strings.Contains(f.Detail, "secret") {
				t.Errorf("found %+v", f)
			}
		}
	})
}
