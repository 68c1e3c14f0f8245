package config

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/internal/contract"
)

var update = flag.Bool("update", false, "write docs/configuration.md and docs/settings.md instead of comparing them")

// sections are the parts of the page in the order of the tables, each with the text above its keys.
var sections = []struct{ prefix, title, text string }{
	{"dir", "Local stack", "Without a database and a Temporal address, `precis` uses a private PostgreSQL and " +
		"Temporal server of its own."},
	{"database_url", "Database", ""},
	{"temporal.", "Temporal", "A cluster of your own or Temporal Cloud."},
	{"http.", "HTTP", ""},
	{"vendors.", "Vendors", "`<name>` is one of the names below, or a name of your own for any server that speaks " +
		"one " +
		"of the protocols."},
	{"settings.", "Settings of a compaction", "They count for every tenant and conversation without settings of " +
		"their own. [settings.md](settings.md) lists them by purpose, and says how to set them for a tenant or a " +
		"conversation."},
	{"prices.", "Prices", "By vendor and model, such as `prices.openai/gpt-4.1.input`. The name of a variable cannot " +
		"contain the name of a model. Give the whole section instead: " +
		"`PRECIS_PRICES='{openai/gpt-4.1: {input: 2, output: 8}}'`."},
	{"models.", "Models", "A built-in table says what is known of models. A value given here overrides the table; a " +
		"model that is not in the table needs its values here. For example `models.house/qwen3.window`, in a " +
		"variable " +
		"`PRECIS_MODELS='{house/qwen3: {window: 131072}}'`."},
	{"quotas.", "Quotas", "What a tenant may store. Only the installation sets quotas: a tenant's own settings " +
		"cannot change them. They apply to the HTTP API and to MCP. Commands that an operator runs on the database, " +
		"such as `precis import`, are exempt, and what they store counts."},
	{"memory.", "Memory", "What compactions covered stays readable: see [memory.md](memory.md)."},
	{"replays.", "Replays", ""},
	{"audit.", "Audit", "Signatures of what is sealed: see [audit.md](audit.md#verify)."},
	{"worker.", "Worker", ""},
	{"log.", "Log", ""},
}

func configurationPage() string {
	p := newDocPage("Configuration")
	p.text("Values are taken from four places. Each place overrides the ones before it:")
	p.list("- ",
		"the defaults below",
		fmt.Sprintf("a YAML file: `--config FILE`, else `$%s`, else `%s` in the working directory if it exists",
			FileVariable, FileName),
		"the environment: the variables of other tools (listed below), then `PRECIS_` plus the key in upper case, its "+
			"levels joined by `__`",
		"flags: those named below, and `--set KEY=VALUE` for any key")
	p.text("`precis config` prints the values that are in force and where each one came from, with secrets masked. " +
		"An " +
		"unknown key or an impossible value is an error that names the key and where it was given. An empty variable " +
		"counts as unset. Secrets are refused on the command line, because everybody on the machine can see it. In a " +
		"variable a list is written `self,anthropic/NAME`; a list or a whole section may also be given as YAML or " +
		"JSON: `[self, {model: openai/NAME, max_output: 8000}]`.")
	p.code("yaml", exampleFile)
	for _, s := range sections {
		p.heading(s.title)
		p.text(s.text)
		p.keys("", keysUnder(s.prefix))
		if s.prefix == "vendors." {
			p.text("These vendors are configured by default; they need only a key:")
			p.list("- ", defaultVendors()...)
		}
	}
	p.heading("Limits of a request")
	p.text("These are the same everywhere and cannot be configured. A value beyond its limit is refused as " +
		"`too_large` before it is decoded, and the answer names the field. Sizes are in bytes: of UTF-8 for texts, " +
		"of JSON as sent for other values.")
	p.list("- ", limits()...)
	p.heading("Variables of other tools")
	p.text("A variable of this list counts where the `PRECIS_` variable of the same key is not set.")
	var variables []string
	for _, v := range OtherTools {
		variables = append(variables, fmt.Sprintf("`%s`: `%s`", v.Variable, v.Key))
	}
	p.list("- ", variables...)
	return p.String()
}

func limits() []string {
	items := []string{
		fmt.Sprintf("a body: `http.max_body_bytes`, for MCP at most %d bytes", contract.MaxMCPBody),
		fmt.Sprintf("nesting of a body: %d levels", contract.MaxDepth),
		fmt.Sprintf("the answer to a bad request: %d listed fields, the others are counted, and %d bytes for each text",
			contract.MaxErrors, contract.MaxErrorText),
	}
	for _, l := range contract.Limits {
		items = append(items, fmt.Sprintf("%s: %d %s", l.About, l.Max, l.Unit))
	}
	return items
}

func keysUnder(prefix string) []Key {
	return slices.DeleteFunc(Describe(), func(k Key) bool { return !strings.HasPrefix(k.Name, prefix) })
}

func defaultVendors() []string {
	var items []string
	vendors := Defaults().Vendors
	for _, name := range slices.Sorted(maps.Keys(vendors)) {
		items = append(items, fmt.Sprintf("`%s` (type `%s`), `%s`", name, vendors[name].Type, vendors[name].BaseURL))
	}
	return items
}

// exampleFile is the example of docs/configuration.md.
const exampleFile = `
database_url: postgres://precis@db.internal:5432/precis
temporal:
  address: temporal.internal:7233
vendors:
  house:                       # any server that speaks the OpenAI protocol
    type: openai
    base_url: http://gpu-1.internal:8000/v1
settings:
  summarizers: [self, anthropic/claude-sonnet-4-5, {model: house/qwen3, context_window: 131072}]
  trigger:
    fraction: 0.85
    start: {unused_percent: 0.4}   # compute in the background from 60 % of the window
    apply: {unused_percent: 0.2}   # put it in effect at 80 %
log: {format: json}
`

func TestDocumentationIsTheTable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"configuration.md": configurationPage(), "settings.md": settingsPage()} {
		path := filepath.Join("..", "..", "docs", name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, path, want)
			continue
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), want); diff != "" {
			t.Errorf("docs/%s is not what the tables of keys say; run: go test ./internal/config -run "+
				"TestDocumentation "+
				"-update\n%s", name, diff)
		}
	}
}

func TestEveryKeyIsInOneSectionOfThePage(t *testing.T) {
	t.Parallel()
	for _, k := range table {
		n := 0
		for _, s := range sections {
			if strings.HasPrefix(k.Name, s.prefix) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s is in %d sections", k.Name, n)
		}
	}
}

func TestTheExampleOnThePageLoads(t *testing.T) {
	t.Parallel()
	c, _, err := load(t, exampleFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Settings.Summarizers) != 3 || c.Settings.Summarizers[2].ContextWindow != 131072 ||
		c.Vendors["house"].Type != contract.ProtocolOpenAI {
		t.Errorf("loaded %+v", c)
	}
}
