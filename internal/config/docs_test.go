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
)

var update = flag.Bool("update", false, "write docs/configuration.md and docs/settings.md instead of comparing them")

// sections are the parts of the page, in the table's order, each with what is said above its keys.
var sections = []struct{ prefix, title, text string }{
	{"dir", "Local stack", "Without a database and a Temporal address, `precis` uses a private PostgreSQL and " +
		"Temporal server of its own."},
	{"database_url", "Database", ""},
	{"temporal.", "Temporal", "A cluster of your own or Temporal Cloud."},
	{"http.", "HTTP", ""},
	{"vendors.", "Vendors", "`<name>` is one of those below, or a name of your own for any server that speaks one " +
		"of the protocols."},
	{"settings.", "Settings of a compaction", "They hold for every tenant and conversation that does not say " +
		"otherwise; [settings.md](settings.md) has them by what they are for, and says how a tenant and a " +
		"conversation do."},
	{"prices.", "Prices", "By vendor and model, such as `prices.openai/gpt-4.1.input`. A variable's name cannot " +
		"hold a model's name: give the whole section, `PRECIS_PRICES='{openai/gpt-4.1: {input: 2, output: 8}}'`."},
	{"models.", "Models", "What is known of models stands in a table; what is said here beats it, and a model " +
		"that the table has not needs it. Such as `models.house/qwen3.window`; in a variable: " +
		"`PRECIS_MODELS='{house/qwen3: {window: 131072}}'`."},
	{"memory.", "Memory", "What compactions covered stays readable: docs/memory.md."},
	{"worker.", "Worker", ""},
	{"log.", "Log", ""},
}

func page() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("<!-- Generated from internal/config/keys.go by: go test ./internal/config -run TestDocumentation -update -->")
	line("# Configuration")
	line("")
	line("Values are taken from four places, each over the one before:")
	line("")
	line("1. the defaults below")
	line("2. a YAML file: `--config FILE`, else `$%s`, else `%s` in the working directory if it is there", FileVariable,
		FileName)
	line("3. the environment: the variables that other tools use (below), then `PRECIS_` plus the key in upper " +
		"case, its levels joined by `__`")
	line("4. flags: those named below, and `--set KEY=VALUE` for any key")
	line("")
	line("`precis config` prints what is in force and where each value came from, with secrets masked. An unknown " +
		"key and an")
	line("impossible value are errors that name the key and the place. An empty variable counts as unset. Secrets " +
		"are refused on")
	line("the command line, which everybody on the machine can see. Lists are written `self,anthropic/NAME` in a " +
		"variable; a list")
	line("or a section may also be given there as YAML or JSON: `[self, {model: openai/NAME, max_output: 8000}]`.")
	line("")
	line("```yaml")
	line("%s", strings.TrimSpace(exampleFile))
	line("```")
	for _, s := range sections {
		line("")
		line("## %s", s.title)
		line("")
		if s.text != "" {
			line("%s", s.text)
			line("")
		}
		line("| key | default | unit | effect |")
		line("| --- | --- | --- | --- |")
		for _, k := range Describe() {
			if !strings.HasPrefix(k.Name, s.prefix) {
				continue
			}
			effect := k.Effect
			if k.Flag != "" {
				effect += fmt.Sprintf(" Flag `--%s`.", k.Flag)
			}
			line("| `%s` | %s | %s | %s |", k.Name, code(k.Default), kindOf(k), strings.ReplaceAll(effect, "|", `\|`))
		}
		if s.prefix == "vendors." {
			line("")
			line("| vendor | type | base URL |")
			line("| --- | --- | --- |")
			d := Defaults().Vendors
			for _, name := range slices.Sorted(maps.Keys(d)) {
				line("| `%s` | `%s` | `%s` |", name, d[name].Type, d[name].BaseURL)
			}
		}
	}
	line("")
	line("## Variables of other tools")
	line("")
	line("They count where the `PRECIS_` variable of the same key is not set.")
	line("")
	line("| variable | key |")
	line("| --- | --- |")
	for _, u := range Usual() {
		line("| `%s` | `%s` |", u.Variable, u.Key)
	}
	return b.String()
}

// exampleFile is loaded by a test.
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

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

// kindOf gives the unit, and the type where there is none.
func kindOf(k Key) string {
	if k.Unit != "" {
		return k.Unit
	}
	return k.Type
}

func TestDocumentationIsTheTable(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"configuration.md": page(), "settings.md": settingsPage()} {
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
			t.Errorf("docs/%s is not what keys.go says; run: go test ./internal/config -run TestDocumentation "+
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
		c.Vendors["house"].Type != TypeOpenAI {
		t.Errorf("loaded %+v", c)
	}
}
