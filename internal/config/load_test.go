package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"precis/pipeline"
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
	if diff := cmp.Diff(Defaults(), c); diff != "" {
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

func TestValuesTakeTheirKeysType(t *testing.T) {
	t.Parallel()
	specs := []pipeline.SummarizerSpec{{Model: "self"}, {Model: "anthropic/x"}}
	long := []pipeline.SummarizerSpec{{Model: "self"}, {Model: "openai/y", ContextWindow: 64000, MaxOutput: 4096}}
	summarizers := func(c Config) any { return c.Settings.Summarizers }
	for _, tt := range []struct {
		name    string
		yaml    string
		environ []string
		args    []string
		get     func(Config) any
		want    any
	}{
		{
			name: "list of names in a variable", environ: []string{"PRECIS_SETTINGS__SUMMARIZERS=self, anthropic/x"},
			get: summarizers, want: specs,
		},
		{
			name: "list with an object in a variable",
			environ: []string{`PRECIS_SETTINGS__SUMMARIZERS=["self",{"model":"openai/y","context_window":64000,` +
				`"max_output":4096}]`}, get: summarizers, want: long,
		},
		{name: "list in the file", yaml: "settings: {summarizers: [self, anthropic/x]}", get: summarizers, want: specs},
		{name: "list with an object in the file", yaml: "settings:\n  summarizers:\n  - self\n  - model: " +
			"openai/y\n    context_window: 64_000\n    max_output: 4096\n", get: summarizers, want: long},
		{name: "list in a flag", args: []string{"--summarizer=self,anthropic/x"}, get: summarizers, want: specs},
		{
			name: "list in --set", args: []string{"--set", "settings.summarizers=self,anthropic/x"}, get: summarizers,
			want: specs,
		},
		{
			name: "a later list replaces an earlier one", yaml: "settings: {summarizers: [a/b, c/d, e/f]}",
			environ: []string{"PRECIS_SETTINGS__SUMMARIZERS=self,anthropic/x"}, get: summarizers, want: specs,
		},
		{
			name:    "nested number in a variable",
			environ: []string{"PRECIS_SETTINGS__TRIGGER__START__UNUSED_TOKENS=20000"},
			get:     func(c Config) any { return c.Settings.Trigger.Start.UnusedTokens }, want: 20000,
		},
		{
			name: "share in a variable", environ: []string{"PRECIS_SETTINGS__TRIGGER__FRACTION=0.75"},
			get: func(c Config) any { return c.Settings.Trigger.Fraction }, want: 0.75,
		},
		{
			name: "whole number for a share", yaml: "settings: {trigger: {fraction: 1}}",
			get: func(c Config) any { return c.Settings.Trigger.Fraction }, want: 1.0,
		},
		{
			name: "exponent for a whole number", yaml: "settings: {max_prompt_chars: 1e6}",
			get: func(c Config) any { return c.Settings.MaxPromptChars }, want: 1_000_000,
		},
		{
			name: "truth in a variable", environ: []string{"PRECIS_SETTINGS__TRIGGER__AUTO=false"},
			get: func(c Config) any { return c.Settings.Trigger.Auto }, want: false,
		},
		{
			name: "truth in a flag", args: []string{"--redact"}, get: func(c Config) any { return c.Settings.Redact },
			want: true,
		},
		{
			name: "named string", environ: []string{"PRECIS_SETTINGS__DIGEST=never"},
			get: func(c Config) any { return c.Settings.Digest }, want: pipeline.DigestNever,
		},
		{
			name: "number that is text", environ: []string{"PRECIS_TEMPORAL__NAMESPACE=0123"},
			get: func(c Config) any { return c.Temporal.Namespace }, want: "0123",
		},
		{
			name: "empty variable is unset", environ: []string{"PRECIS_HTTP__ADDR=", "TEMPORAL_ADDRESS="},
			get: func(c Config) any { return c.HTTP.Addr + c.Temporal.Address }, want: "127.0.0.1:8700",
		},
		{
			name: "empty section is unset", yaml: "settings:\n  trigger:\nlog:\n",
			get: func(c Config) any { return c.Settings.Trigger.Turns }, want: 1000,
		},
		{
			name: "vendor of one's own in variables",
			environ: []string{
				"PRECIS_VENDORS__LOCAL__TYPE=openai", "PRECIS_VENDORS__LOCAL__BASE_URL=http://127.0.0.1:8000/v1",
				`PRECIS_VENDORS__LOCAL__HEADERS={"X-Team": "a"}`,
			},
			get: func(c Config) any { return c.Vendors["local"] },
			want: Vendor{
				Type: "openai", BaseURL: "http://127.0.0.1:8000/v1",
				Headers: map[string]string{"X-Team": "a"},
			},
		},
		{
			name: "a section in a variable, and one of its keys in another", environ: []string{
				"PRECIS_VENDORS__LOCAL={type: openai, base_url: 'http://127.0.0.1:1'}",
				"PRECIS_VENDORS__LOCAL__BASE_URL=http://127.0.0.1:2",
			},
			get:  func(c Config) any { return c.Vendors["local"] },
			want: Vendor{Type: "openai", BaseURL: "http://127.0.0.1:2"},
		},
		{
			name:    "prices of a model with dots",
			yaml:    "prices:\n  openai/gpt-4.1: {input: 2, cached_input: 0.5, output: 8}\n",
			environ: []string{"PRECIS_PRICES={openai/gpt-4.1: {output: 9}}"},
			get:     func(c Config) any { return c.Prices },
			want:    map[string]Price{"openai/gpt-4.1": {Input: 2, CachedInput: 0.5, Output: 9}},
		},
		{
			name:    "facts of a model with dots",
			yaml:    "models:\n  house/qwen-2.5: {window: 131072, native_compaction: [none]}\n",
			environ: []string{"PRECIS_MODELS={house/qwen-2.5: {thinking: 'yes'}}"},
			get:     func(c Config) any { return c.Models },
			want: map[string]Model{"house/qwen-2.5": {
				Window: 131072, NativeCompaction: []string{"none"},
				Thinking: "yes",
			}},
		},
		{
			name: "usual names of Temporal", environ: []string{"TEMPORAL_TLS=true", "TEMPORAL_TLS_SERVER_NAME=x"},
			get: func(c Config) any { return c.Temporal.TLS }, want: TLS{Enabled: true, ServerName: "x"},
		},
		{
			name:    "variables that are not configuration",
			environ: []string{"PRECIS_CORPUS=/x", "PRECIS_TEST_ANYTHING=1"},
			get:     func(c Config) any { return c.Log.Level }, want: "info",
		},
		{
			name: "flag that is not configuration", args: []string{"--unbound=8"},
			get: func(c Config) any { return c.Log.Level }, want: "info",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, _, err := load(t, tt.yaml, tt.environ, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, tt.get(c)); diff != "" {
				t.Errorf("(- want, + got):\n%s", diff)
			}
		})
	}
}

func TestFaultsNameTheKeyAndTheSource(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		yaml    string
		environ []string
		args    []string
		want    []string // each a part of the error
	}{
		{
			name: "unknown key in the file", yaml: "log:\n  levle: debug\n",
			want: []string{"log.levle (precis.yaml:2): unknown key; known here: level, format"},
		},
		{
			name: "unknown key in a variable", environ: []string{"PRECIS_SETTINGS__TRIGER__AUTO=true"},
			want: []string{"settings.triger ($PRECIS_SETTINGS__TRIGER__AUTO): unknown key", "trigger, summarizers"},
		},
		{
			name: "unknown key in --set", args: []string{"--set", "nothing=1"},
			want: []string{"nothing (--set): unknown key"},
		},
		{name: "no value in --set", args: []string{"--set", "log.level"}, want: []string{"--set: wants KEY=VALUE"}},
		{
			name: "text for a number", environ: []string{"PRECIS_SETTINGS__TRIGGER__TURNS=many"},
			want: []string{`settings.trigger.turns ($PRECIS_SETTINGS__TRIGGER__TURNS): wants a whole number, not "many"`},
		},
		{
			name: "quoted number in the file", yaml: `settings: {trigger: {turns: "10"}}`,
			want: []string{`settings.trigger.turns (precis.yaml:1): wants a whole number, not "10"`},
		},
		{
			name: "fraction for a whole number", yaml: `settings: {trigger: {turns: 1.5}}`,
			want: []string{`wants a whole number, not 1.5`},
		},
		{
			name: "not a number", yaml: `settings: {trigger: {fraction: .nan}}`,
			want: []string{`settings.trigger.fraction (precis.yaml:1): wants a number, not NaN`},
		},
		{
			name: "endless", environ: []string{"PRECIS_SETTINGS__NUDGE_FRACTION=inf"},
			want: []string{`settings.nudge_fraction`, `wants a number, not "inf"`},
		},
		{
			name: "number for text", yaml: "temporal: {namespace: 0123}",
			want: []string{"temporal.namespace", "wants text, not 83; put it in quotes"},
		},
		{
			name: "yes for true", yaml: "settings: {redact: yes}",
			want: []string{`settings.redact`, `wants true or false, not "yes"`},
		},
		{
			name: "value for a section", yaml: "log: debug",
			want: []string{"log (precis.yaml:1): wants a section of keys"},
		},
		{
			name: "value for a section in a variable", environ: []string{"PRECIS_LOG=debug"},
			want: []string{"log ($PRECIS_LOG): is a section, not a value", "PRECIS_LOG__KEY"},
		},
		{
			name: "section for a value", yaml: "dir: {a: b}",
			want: []string{`dir (precis.yaml:1): wants text, not {"a":"b"}`},
		},
		{
			name: "text for a list in the file", yaml: "settings: {summarizers: self}",
			want: []string{"settings.summarizers", "wants a list of summarizers"},
		},
		{
			name: "wrong entry of a list", yaml: "settings: {summarizers: [self, 5]}",
			want: []string{"entry 2 wants a name or an object, not 5"},
		},
		{
			name: "unknown key in an entry", yaml: "settings: {summarizers: [{model: a/b, window: 5}]}",
			want: []string{`entry 1 has the unknown key "window"; known here: model, context_window, max_output`},
		},
		{name: "broken YAML", yaml: "log: [", want: []string{"precis.yaml", "yaml: line 1"}},
		{name: "the same key twice", yaml: "dir: a\ndir: b\n", want: []string{"line 2", `"dir" already defined`}},
		{name: "two documents", yaml: "dir: a\n---\ndir: b\n", want: []string{"more than one YAML document"}},
		{
			name: "named file that is not there", args: []string{"--config", "other.yaml"},
			want: []string{"other.yaml: the configuration file cannot be read"},
		},
		{
			name: "named by variable and not there", environ: []string{"PRECIS_CONFIG=third.yaml"},
			want: []string{"third.yaml: the configuration file cannot be read"},
		},
		{
			name: "unknown log level", yaml: "log: {level: loud}",
			want: []string{`log.level (precis.yaml:1): is one of debug, info, warn, error, not "loud"`},
		},
		{
			name: "address without a port", environ: []string{"TEMPORAL_ADDRESS=here"},
			want: []string{`temporal.address ($TEMPORAL_ADDRESS): is HOST:PORT`, `"here"`},
		},
		{
			name: "port out of range", yaml: `http: {addr: "127.0.0.1:99999"}`,
			want: []string{"http.addr (precis.yaml:1): is HOST:PORT"},
		},
		{
			name: "database URL of another kind", environ: []string{"PRECIS_DATABASE_URL=mysql://u:hunter2@h/d"},
			want: []string{"database_url ($PRECIS_DATABASE_URL): is postgres://"},
		},
		{
			name: "vendor without a type", environ: []string{"PRECIS_VENDORS__MINE__BASE_URL=http://h/v1"},
			want: []string{"vendors.mine.type (default): is missing: one of anthropic, openai, openai-responses, google"},
		},
		{
			name: "vendor without an address", environ: []string{"PRECIS_VENDORS__MINE__TYPE=openai"},
			want: []string{"vendors.mine.base_url (default): is missing"},
		},
		{
			name: "vendor of unknown type", yaml: "vendors: {xai: {type: soap}}",
			want: []string{`vendors.xai.type (precis.yaml:1): is one of anthropic, openai, openai-responses, ` +
				`google, bedrock, not "soap"`},
		},
		{
			name: "vendor's name with a slash", yaml: "vendors: {a/b: {type: openai, base_url: 'http://h'}}",
			want: []string{"vendors.a/b", "a vendor's name"},
		},
		{
			name: "negative price", yaml: "prices: {a/b: {output: -1}}",
			want: []string{"prices.a/b.output (precis.yaml:1): is at least 0, not -1"},
		},
		{name: "price of no model", yaml: "prices: {gpt: {output: 1}}", want: []string{"prices.gpt", "VENDOR/MODEL"}},
		{
			name: "a folder that depends on where one stands", yaml: "memory: {folder: notes}",
			want: []string{`memory.folder (precis.yaml:1): is an absolute path, not "notes"`},
		},
		{
			name: "no room to work", yaml: "worker: {concurrency: 0}",
			want: []string{"worker.concurrency (precis.yaml:1): is at least 1, not 0"},
		},
		{
			name: "one queue for both", yaml: "worker: {llm_task_queue: compaction}",
			want: []string{"worker.llm_task_queue (precis.yaml:1): is a queue of its own"},
		},
		{
			name: "no name for the queue", yaml: `worker: {task_queue: ""}`,
			want: []string{"worker.task_queue (precis.yaml:1): may not be empty"},
		},
		{
			name: "certificate without its key", environ: []string{"TEMPORAL_TLS_CLIENT_CERT_PATH=c.pem"},
			want: []string{"temporal.tls.key_file (default): is missing"},
		},
		{
			name: "certificate twice", yaml: "temporal: {tls: {ca_file: a, ca_data: b}}",
			want: []string{"temporal.tls.ca_data (precis.yaml:1): is given as well as temporal.tls.ca_file"},
		},
		{
			name: "limit below zero", yaml: "settings: {trigger: {token_limit: -1}}",
			want: []string{"settings.trigger.token_limit (precis.yaml:1): is -1"},
		},
		{
			name: "share above one", environ: []string{"PRECIS_SETTINGS__TRIGGER__FRACTION=90"},
			want: []string{"settings.trigger.fraction ($PRECIS_SETTINGS__TRIGGER__FRACTION): is 90"},
		},
		{
			name: "unknown policy", args: []string{"--set", "settings.digest=sometimes"},
			want: []string{`settings.digest (--set): is "sometimes"`},
		},
		{
			name: "summarizer without a model", yaml: "settings: {summarizers: [self, gpt]}",
			want: []string{"settings.summarizers (precis.yaml:1): [1].model "},
		},
		{
			name: "summarizer of no vendor", args: []string{"--summarizer=self,antropic/x"},
			want: []string{
				`settings.summarizers (--summarizer): names antropic/x, but no vendor "antropic"`,
				"anthropic, google, openai, xai",
			},
		},
		{
			name: "all of them at once", yaml: "dir: 5\nlog: {levle: x}\n", environ: []string{"PRECIS_NOPE=1"},
			want: []string{"dir (precis.yaml:1)", "log.levle (precis.yaml:2)", "nope ($PRECIS_NOPE)"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := load(t, tt.yaml, tt.environ, tt.args...)
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error\n%s\ndoes not say\n%s", err, want)
				}
			}
			var fault *Error
			if !errors.As(err, &fault) {
				t.Errorf("%T is no *Error", err)
			}
		})
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
