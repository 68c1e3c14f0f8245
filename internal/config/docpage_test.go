package config

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// docPage is a generated page of the documentation, with lines of at most 120 characters.
type docPage struct{ b strings.Builder }

func newDocPage(title string) *docPage {
	p := &docPage{}
	p.b.WriteString("<!-- Generated from the tables in internal/config/keys_*.go by:\n" +
		"go test ./internal/config -run TestDocumentation -update -->\n# " + title + "\n")
	return p
}

func (p *docPage) heading(title string) { fmt.Fprintf(&p.b, "\n## %s\n", title) }

// text writes a paragraph, nothing for "".
func (p *docPage) text(s string) {
	if s != "" {
		p.b.WriteString("\n")
		p.wrapped("", "", s)
	}
}

func (p *docPage) code(language, text string) {
	fmt.Fprintf(&p.b, "\n```%s\n%s\n```\n", language, strings.TrimSpace(text))
}

// list writes list items, each with its marker.
func (p *docPage) list(marker string, items ...string) {
	p.b.WriteString("\n")
	for _, item := range items {
		p.wrapped(marker, strings.Repeat(" ", utf8.RuneCountInString(marker)), item)
	}
}

// keys writes an entry for each key, its name without the prefix.
func (p *docPage) keys(prefix string, keys []Key) {
	var items []string
	for _, k := range keys {
		about := []string{k.Unit}
		if k.Unit == "" {
			about[0] = k.Type
		}
		if k.Default != "" {
			about = append(about, "default `"+k.Default+"`")
		}
		if k.Flag != "" {
			about = append(about, "flag `--"+k.Flag+"`")
		}
		items = append(items, fmt.Sprintf("**`%s`** (%s). %s", strings.TrimPrefix(k.Name, prefix),
			strings.Join(about, ", "), strings.ReplaceAll(k.Effect, "`"+settingsPrefix,
				"`"+strings.TrimPrefix(settingsPrefix, prefix))))
	}
	p.list("- ", items...)
}

func (p *docPage) wrapped(first, following, text string) {
	const width = 120
	line := first
	empty := true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			p.b.WriteString(line + "\n")
			line, empty = following, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	p.b.WriteString(line + "\n")
}

func (p *docPage) String() string { return p.b.String() }
