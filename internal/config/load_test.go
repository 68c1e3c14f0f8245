package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/pflag"
)

func splitKey(key string) []string { return strings.Split(key, ".") }

// load loads from a file's content (none for ""), an environment and a command line.
func load(t *testing.T, yaml string, environ []string, args ...string) (Config, Origins, error) {
	t.Helper()
	dir := t.TempDir()
	if yaml != "" {
		write(t, filepath.Join(dir, FileName), yaml)
	}
	flags := pflag.NewFlagSet("precis", pflag.ContinueOnError)
	AddFlags(flags)
	flags.StringSlice("summarizer", nil, "")
	Bind(flags, "summarizer", "settings.summarizers")
	flags.Bool("redact", false, "")
	Bind(flags, "redact", "settings.redact")
	flags.Int("unbound", 7, "")
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if environ == nil {
		environ = []string{}
	}
	return Load(LoadOptions{WorkDir: dir, Environ: environ, Flags: flags})
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestNothingConfiguredGivesTheDefaults(t *testing.T) {
	t.Parallel()
	c, origins, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Defaults(), c, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("(- defaults, + loaded):\n%s", diff)
	}
	if len(origins) != 0 {
		t.Errorf("origins of defaults: %v", origins)
	}
	if got := origins.Of("http.addr").String(); got != "default" {
		t.Errorf("origin of a default: %q", got)
	}
}

func TestEachSourceBeatsTheOneBefore(t *testing.T) {
	t.Parallel()
	const file = `
temporal:
  address: file:1
  namespace: file
log: {level: debug, format: json}
vendors:
  openai:
    api_key: from-file
`
	environ := []string{
		"TEMPORAL_ADDRESS=usual:2",
		"OPENAI_API_KEY=from-usual",
		"PRECIS_TEMPORAL__ADDRESS=ours:3",
		"PRECIS_LOG__LEVEL=warn",
		"PATH=/bin",
	}
	c, origins, err := load(t, file, environ, "--log-level=error")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ key, got, want, from string }{
		{"temporal.namespace", c.Temporal.Namespace, "file", "precis.yaml:4"},
		{"temporal.address", c.Temporal.Address, "ours:3", "$PRECIS_TEMPORAL__ADDRESS"},
		{"vendors.openai.api_key", c.Vendors["openai"].APIKey, "from-usual", "$OPENAI_API_KEY"},
		{"vendors.openai.base_url", c.Vendors["openai"].BaseURL, "https://api.openai.com/v1", "default"},
		{"log.format", c.Log.Format, "json", "precis.yaml:5"},
		{"log.level", c.Log.Level, "error", "--log-level"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s = %q, want %q", tt.key, tt.got, tt.want)
		}
		if got := origins.Of(tt.key).String(); got != tt.from {
			t.Errorf("%s comes from %q, want %q", tt.key, got, tt.from)
		}
	}
}

func TestNamedFileIsReadFromAnywhere(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mine.yaml")
	write(t, path, "dir: elsewhere\n")
	for name, opts := range map[string]LoadOptions{
		"option":   {File: path, Environ: []string{}},
		"variable": {Environ: []string{FileVariable + "=" + path}},
	} {
		c, origins, err := Load(opts)
		if err != nil {
			t.Fatal(err)
		}
		if want := path + ":1"; c.Dir != "elsewhere" || origins.Of("dir").String() != want {
			t.Errorf("%s: dir %q from %s, want it from %s", name, c.Dir, origins.Of("dir"), want)
		}
	}
	c, _, err := load(t, "", nil, "--config", path)
	if err != nil || c.Dir != "elsewhere" {
		t.Errorf("flag: dir %q, error %v", c.Dir, err)
	}
}

func TestMergedYAMLKeepsItsValue(t *testing.T) {
	t.Parallel()
	c, origins, err := load(t, "vendors:\n  xai: &x {api_key: k}\n  openai:\n    <<: *x\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Vendors["openai"].APIKey != "k" {
		t.Errorf("openai's key: %q", c.Vendors["openai"].APIKey)
	}
	if got := origins.Of("vendors.openai.api_key").String(); got != "precis.yaml" {
		t.Errorf("origin: %q", got)
	}
}

func TestBindRefusesWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	for _, bad := range [][2]string{{"there", "no.such.key"}, {"missing", "dir"}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("Bind(%q, %q) did not panic", bad[0], bad[1])
				}
			}()
			flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
			flags.String("there", "", "")
			Bind(flags, bad[0], bad[1])
		}()
	}
}
