package config

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// refused is a configuration that does not load.
type refused struct {
	name    string
	yaml    string
	environ []string
	args    []string
	want    []string // each a part of the error
}

var refusedKeys = []refused{
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
}

var refusedTypes = []refused{
	{
		name: "text for a number", environ: []string{"PRECIS_SETTINGS__TRIGGER__TURNS=many"},
		want: []string{`settings.trigger.turns ($PRECIS_SETTINGS__TRIGGER__TURNS): must be a whole number, not "many"`},
	},
	{
		name: "quoted number in the file", yaml: `settings: {trigger: {turns: "10"}}`,
		want: []string{`settings.trigger.turns (precis.yaml:1): must be a whole number, not "10"`},
	},
	{
		name: "fraction for a whole number", yaml: `settings: {trigger: {turns: 1.5}}`,
		want: []string{`must be a whole number, not 1.5`},
	},
	{
		name: "not a number", yaml: `settings: {trigger: {fraction: .nan}}`,
		want: []string{`settings.trigger.fraction (precis.yaml:1): must be a number, not NaN`},
	},
	{
		name: "endless", environ: []string{"PRECIS_SETTINGS__NUDGE_FRACTION=inf"},
		want: []string{`settings.nudge_fraction`, `must be a number, not +Inf`},
	},
	{
		name: "number for text", yaml: "temporal: {namespace: 0123}",
		want: []string{"temporal.namespace", "must be text, not 83; put it in quotes"},
	},
	{
		name: "yes for true", yaml: "settings: {redact: yes}",
		want: []string{`settings.redact`, `must be true or false, not "yes"`},
	},
	{
		name: "value for a section", yaml: "log: debug",
		want: []string{"log (precis.yaml:1): is a section, not a value; give one of its keys (level, format)"},
	},
	{
		name: "value for a section in a variable", environ: []string{"PRECIS_LOG=debug"},
		want: []string{"log ($PRECIS_LOG): is a section, not a value; give one of its keys (level, format)"},
	},
	{
		name: "section for a value", yaml: "dir: {a: b}",
		want: []string{`dir (precis.yaml:1): must be text, not {"a":"b"}`},
	},
	{
		name: "text for a list in the file", yaml: "settings: {summarizers: self}",
		want: []string{"settings.summarizers", "must be a list of summarizers"},
	},
	{
		name: "wrong entry of a list", yaml: "settings: {summarizers: [self, 5]}",
		want: []string{"entry 2 must be a name or an object, not 5"},
	},
	{
		name: "unknown key in an entry", yaml: "settings: {summarizers: [{model: a/b, window: 5}]}",
		want: []string{`entry 1 has the unknown key "window"; known here: model, context_window, max_output`},
	},
}

var refusedFiles = []refused{
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
}

var refusedPlaces = []refused{
	{
		name: "unknown log level", yaml: "log: {level: loud}",
		want: []string{`log.level (precis.yaml:1): must be one of debug, info, warn, error, not "loud"`},
	},
	{
		name: "address without a port", environ: []string{"TEMPORAL_ADDRESS=here"},
		want: []string{`temporal.address ($TEMPORAL_ADDRESS): must be HOST:PORT`, `"here"`},
	},
	{
		name: "port out of range", yaml: `http: {addr: "127.0.0.1:99999"}`,
		want: []string{"http.addr (precis.yaml:1): must be HOST:PORT"},
	},
	{
		name: "database URL of another kind", environ: []string{"PRECIS_DATABASE_URL=mysql://u:hunter2@h/d"},
		want: []string{"database_url ($PRECIS_DATABASE_URL): must be postgres://"},
	},
}

var refusedVendors = []refused{
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
		want: []string{`vendors.xai.type (precis.yaml:1): must be one of anthropic, openai, openai-responses, ` +
			`google, bedrock, not "soap"`},
	},
	{
		name: "vendor's name with a slash", yaml: "vendors: {a/b: {type: openai, base_url: 'http://h'}}",
		want: []string{"vendors.a/b", "is not a vendor's name"},
	},
	{
		name: "negative price", yaml: "prices: {a/b: {output: -1}}",
		want: []string{"prices.a/b.output (precis.yaml:1): must be at least 0, not -1"},
	},
	{name: "price of no model", yaml: "prices: {gpt: {output: 1}}", want: []string{"prices.gpt", "VENDOR/MODEL"}},
	{
		name: "a folder that depends on where one stands", yaml: "memory: {folder: notes}",
		want: []string{`memory.folder (precis.yaml:1): must be an absolute path, not "notes"`},
	},
}

var refusedProcesses = []refused{
	{
		name: "no room to work", yaml: "worker: {concurrency: 0}",
		want: []string{"worker.concurrency (precis.yaml:1): must be at least 1, not 0"},
	},
	{
		name: "one queue for both", yaml: "worker: {llm_task_queue: compaction}",
		want: []string{"worker.llm_task_queue (precis.yaml:1): must be a queue of its own"},
	},
	{
		name: "no name for the queue", yaml: `worker: {task_queue: ""}`,
		want: []string{"worker.task_queue (precis.yaml:1): must not be empty"},
	},
	{
		name: "certificate without its key", environ: []string{"TEMPORAL_TLS_CLIENT_CERT_PATH=c.pem"},
		want: []string{"temporal.tls.key_file (default): is missing"},
	},
	{
		name: "certificate twice", yaml: "temporal: {tls: {ca_file: a, ca_data: b}}",
		want: []string{"temporal.tls.ca_data (precis.yaml:1): is given as well as temporal.tls.ca_file"},
	},
}

var refusedSettings = []refused{
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
			"configured are anthropic, google",
		},
	},
	{
		name: "all of them at once", yaml: "dir: 5\nlog: {levle: x}\n", environ: []string{"PRECIS_NOPE=1"},
		want: []string{"dir (precis.yaml:1)", "log.levle (precis.yaml:2)", "nope ($PRECIS_NOPE)"},
	},
}

func TestErrorsNameTheKeyAndTheSource(t *testing.T) {
	t.Parallel()
	for _, tt := range slices.Concat(refusedKeys, refusedTypes, refusedFiles, refusedPlaces, refusedVendors,
		refusedProcesses, refusedSettings) {
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
			if !errors.As(err, new(*Error)) {
				t.Errorf("%T is not an *Error", err)
			}
		})
	}
}
