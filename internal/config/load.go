package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/knadh/koanf/maps"
	koanfyaml "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

const (
	// FileName is the file that is read when none is named, if it is there.
	FileName = "precis.yaml"
	// FileVariable names the file.
	FileVariable = "PRECIS_CONFIG"

	envPrefix = "PRECIS_"
	// levels joins the levels of a key in a variable's name. koanf splits keys by it too: a dot would split
	// the names of models.
	levels = "__"
)

// notConfiguration are the variables with our prefix that are not keys: one that names the file, and those
// that only tests read.
func notConfiguration(name string) bool {
	return slices.Contains([]string{FileVariable, "PRECIS_CORPUS", "PRECIS_UPDATE_GOLDEN"}, name) ||
		strings.HasPrefix(name, "PRECIS_TEST_")
}

// LoadOptions says where Load looks. The zero value looks where a program started by a person should, at no
// flags.
type LoadOptions struct {
	// File is the YAML file; "": the flag --config, else PRECIS_CONFIG, else FileName in WorkDir if it is
	// there. A file that is named and cannot be read is an error.
	File string
	// WorkDir is where relative file names begin; "": the process's working directory.
	WorkDir string
	// Environ is the environment as os.Environ gives it; nil: os.Environ().
	Environ []string
	// Flags are the parsed flags. Only those count that AddFlags or Bind made configuration, and that were
	// given.
	Flags *pflag.FlagSet
}

// given is one value as some source gave it, already of its key's type.
type given struct {
	path  []string
	value any
	from  Origin
}

// Load reads all sources and gives the effective configuration with the origin of each key that is not at
// its default. The error joins one *Error for each thing that is wrong.
func Load(opts LoadOptions) (Config, Origins, error) {
	if opts.Environ == nil {
		opts.Environ = os.Environ()
	}
	l := loader{koanf: koanf.New(levels), origins: Origins{}}
	l.merge(defaults())
	l.merge(l.readFile(opts))
	l.merge(l.readEnviron(opts.Environ))
	l.merge(l.readFlags(opts.Flags))
	if len(l.faults) > 0 {
		return Config{}, nil, errors.Join(l.faults...)
	}
	var c Config
	if err := l.koanf.UnmarshalWithConf("", &c, koanf.UnmarshalConf{Tag: "json"}); err != nil {
		return Config{}, nil, fmt.Errorf("configuration: %w", err)
	}
	if err := l.check(c); err != nil {
		return Config{}, nil, err
	}
	return c, l.origins, nil
}

type loader struct {
	koanf   *koanf.Koanf
	origins Origins
	faults  []error
}

func (l *loader) fail(path []string, from Origin, format string, args ...any) {
	l.faults = append(l.faults, &Error{Key: dotted(path), From: from, Problem: fmt.Sprintf(format, args...)})
}

// merge lays one source's values over what is there. Of two for the same key the later counts.
func (l *loader) merge(values []given) {
	layer := map[string]any{}
	for _, g := range values {
		maps.Merge(nest(g.path, g.value), layer)
		if g.from.Source != SourceDefault {
			l.origins[dotted(g.path)] = g.from
		}
	}
	// Loading a map fails only under StrictMerge.
	if err := l.koanf.Load(confmap.Provider(layer, ""), nil); err != nil {
		l.faults = append(l.faults, fmt.Errorf("merge the configuration: %w", err))
	}
}

func defaults() []given {
	var out []given
	for _, v := range leaves(reflect.ValueOf(Defaults()), nil) {
		out = append(out, given{path: v.path, value: v.value.Interface(), from: Origin{Source: SourceDefault}})
	}
	return out
}

func (l *loader) readFile(opts LoadOptions) []given {
	name, named := fileName(opts)
	from := Origin{Source: SourceFile, Name: name}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(opts.WorkDir, path)
	}
	content, err := file.Provider(path).ReadBytes()
	if errors.Is(err, fs.ErrNotExist) && !named {
		return nil
	}
	if err != nil {
		l.fail(nil, from, "the configuration file cannot be read: %s", err)
		return nil
	}

	var root yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(content))
	if err := documents.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		l.fail(nil, from, "%s", err)
		return nil
	}
	if err := documents.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		l.fail(nil, from, "holds more than one YAML document; only one is read")
		return nil
	}
	values, err := koanfyaml.Parser().Unmarshal(content)
	if err != nil {
		l.fail(nil, from, "%s", err)
		return nil
	}
	return l.collect(reflect.TypeFor[Config](), values, nil, false, func(path []string) Origin {
		at := from
		at.Line = line(&root, path)
		return at
	})
}

// fileName gives the file to read, and whether somebody asked for it by name.
func fileName(opts LoadOptions) (name string, named bool) {
	if opts.File != "" {
		return opts.File, true
	}
	if opts.Flags != nil {
		if f := opts.Flags.Lookup(flagConfig); f != nil && f.Changed {
			return f.Value.String(), true
		}
	}
	for _, v := range opts.Environ {
		if name, ok := strings.CutPrefix(v, FileVariable+"="); ok && name != "" {
			return name, true
		}
	}
	return FileName, false
}

// line finds where in the file a key stands.
func line(node *yaml.Node, path []string) int {
	switch {
	case node.Kind == yaml.DocumentNode && len(node.Content) == 1:
		return line(node.Content[0], path)
	case node.Kind == yaml.AliasNode:
		return line(node.Alias, path)
	case len(path) == 0:
		return node.Line
	case node.Kind != yaml.MappingNode:
		return 0
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != path[0] {
			continue
		}
		if len(path) == 1 {
			return node.Content[i].Line
		}
		return line(node.Content[i+1], path[1:])
	}
	return 0
}

// readEnviron takes the names that other tools use first, so that ours beat them. An empty variable counts
// as unset: that is how Compose and CI systems hand on what nobody set.
func (l *loader) readEnviron(environ []string) []given {
	var out []given
	take := func(variable, value string, path []string) {
		from := Origin{Source: SourceEnv, Name: variable}
		out = append(out, l.collect(reflect.TypeFor[Config](), nest(path, value), nil, true,
			func([]string) Origin { return from })...)
	}
	read := func(keep func(variable string) []string) {
		type entry struct {
			variable, value string
			path            []string
		}
		var found []entry
		provider := env.Provider("", env.Opt{
			EnvironFunc: func() []string { return environ },
			TransformFunc: func(variable, value string) (string, any) {
				if path := keep(variable); path != nil && value != "" {
					found = append(found, entry{variable, value, path})
				}
				return "", nil
			},
		})
		if _, err := provider.Read(); err != nil {
			l.faults = append(l.faults, fmt.Errorf("read the environment: %w", err))
		}
		// A variable that holds a whole section sorts before those of the section's keys, which beat it.
		slices.SortStableFunc(found, func(a, b entry) int { return cmp.Compare(a.variable, b.variable) })
		for _, e := range found {
			take(e.variable, e.value, e.path)
		}
	}
	read(func(variable string) []string {
		for _, u := range Usual() {
			if u.Variable == variable {
				return strings.Split(u.Key, ".")
			}
		}
		return nil
	})
	read(func(variable string) []string {
		key, ours := strings.CutPrefix(variable, envPrefix)
		if !ours || notConfiguration(variable) {
			return nil
		}
		return strings.Split(strings.ToLower(key), levels)
	})
	return out
}

func (l *loader) readFlags(flags *pflag.FlagSet) []given {
	if flags == nil {
		return nil
	}
	var out []given
	take := func(f *pflag.Flag, path []string, value any, text bool) {
		from := Origin{Source: SourceFlag, Name: f.Name}
		for _, g := range l.collect(reflect.TypeFor[Config](), nest(path, value), nil, text,
			func([]string) Origin { return from }) {
			// A command line is there for everybody on the machine to see.
			if k, ok := find(g.path); ok && k.Secret {
				l.fail(g.path, from, "a secret comes from the environment (%s) or the file, never from the command line",
					Variable(g.path))
				continue
			}
			out = append(out, g)
		}
	}
	provider := posflag.ProviderWithFlag(flags, levels, nil, func(f *pflag.Flag) (string, any) {
		if !f.Changed {
			return "", nil
		}
		if f.Name == flagSet {
			assignments, err := flags.GetStringArray(flagSet)
			if err != nil {
				l.faults = append(l.faults, fmt.Errorf("--%s: %w", flagSet, err))
			}
			for _, a := range assignments {
				l.set(f, a, take)
			}
			return "", nil
		}
		if key := boundKey(f); key != "" {
			value := posflag.FlagVal(flags, f)
			_, text := value.(string)
			take(f, strings.Split(key, "."), value, text)
		}
		return "", nil
	})
	if _, err := provider.Read(); err != nil {
		l.faults = append(l.faults, fmt.Errorf("read the flags: %w", err))
	}
	return out
}

// set takes one KEY=VALUE of --set.
func (l *loader) set(f *pflag.Flag, assignment string, take func(*pflag.Flag, []string, any, bool)) {
	from := Origin{Source: SourceFlag, Name: f.Name}
	key, value, ok := strings.Cut(assignment, "=")
	if !ok {
		l.fail(nil, from, "wants KEY=VALUE, not %q", key)
		return
	}
	take(f, strings.Split(key, "."), value, true)
}

func nest(path []string, value any) map[string]any {
	for i := len(path) - 1; i > 0; i-- {
		value = map[string]any{path[i]: value}
	}
	return map[string]any{path[0]: value}
}

func dotted(path []string) string { return strings.Join(path, ".") }
