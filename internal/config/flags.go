package config

import (
	"fmt"
	"strings"

	"github.com/knadh/koanf/maps"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/spf13/pflag"
)

const (
	flagConfig = "config"
	flagSet    = "set"
	// boundTo is the annotation of a flag with the key that the flag gives a value to.
	boundTo = "precis_config_key"
)

// AddFlags defines --config, --set and a flag for each key that has one in the table. Defaults are not shown with the
// flags: `precis config` shows the values that are in force.
func AddFlags(flags *pflag.FlagSet) {
	flags.String(flagConfig, "", fmt.Sprintf("configuration `file` (default: $%s, else %s if it exists)",
		FileVariable, FileName))
	flags.StringArray(flagSet, nil,
		"one configuration value as `KEY=VALUE`, such as settings.digest=never; may be repeated")
	for _, k := range Describe() {
		if k.Flag != "" {
			flags.String(k.Flag, "", usage(k))
			Bind(flags, k.Flag, k.Name)
		}
	}
}

// usage returns the first sentence of a key's documentation, with the key's name for the file. Backquotes are taken
// out: pflag would use a quoted word as the name of the flag's value.
func usage(k Key) string {
	sentence, _, _ := strings.Cut(k.Effect, ". ")
	return fmt.Sprintf("%s (key %s)", strings.TrimSuffix(strings.ReplaceAll(sentence, "`", ""), "."), k.Name)
}

// Bind makes a flag that the caller has defined configuration: when the flag is given, its value is the key's. The key
// is written with dots and has no part that the user chooses. Bind panics when the flag or the key does not exist,
// which is a mistake in the program.
func Bind(flags *pflag.FlagSet, flag, key string) {
	if _, ok := find(strings.Split(key, ".")); !ok {
		panic(fmt.Sprintf("config: flag --%s is bound to the unknown key %q", flag, key))
	}
	if err := flags.SetAnnotation(flag, boundTo, []string{key}); err != nil {
		panic(fmt.Sprintf("config: bind --%s to %s: %s", flag, key, err))
	}
}

// loadFlags reads the flags that were given, in the order of their names, and each KEY=VALUE of --set.
func (l *loader) loadFlags(flags *pflag.FlagSet) {
	if flags == nil {
		return
	}
	flags.Visit(func(f *pflag.Flag) {
		if key := f.Annotations[boundTo]; len(key) == 1 {
			l.loadFlag(f.Name, key[0], posflag.FlagVal(flags, f))
		}
		if f.Name != flagSet {
			return
		}
		assignments, err := flags.GetStringArray(flagSet)
		if err != nil {
			l.problems = append(l.problems, fmt.Errorf("--%s: %w", flagSet, err))
		}
		for _, assignment := range assignments {
			key, value, ok := strings.Cut(assignment, "=")
			if !ok {
				l.fail(nil, Origin{Source: SourceFlag, Name: flagSet}, "wants KEY=VALUE, not %q", key)
				continue
			}
			l.loadFlag(flagSet, key, value)
		}
	})
}

func (l *loader) loadFlag(name, key string, value any) {
	path := strings.Split(key, ".")
	if text, ok := value.(string); ok {
		value = typed(path, text)
	}
	l.add(nest(path, value), func([]string) Origin { return Origin{Source: SourceFlag, Name: name} })
}

// nest puts a value under a path of keys.
func nest(path []string, value any) map[string]any {
	key := strings.Join(path, "\x00")
	return maps.Unflatten(map[string]any{key: value}, "\x00")
}

func dotted(path []string) string { return strings.Join(path, ".") }
