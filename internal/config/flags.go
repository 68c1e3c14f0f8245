package config

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"
)

const (
	flagConfig = "config"
	flagSet    = "set"
	// boundTo is the annotation of a flag that holds the key it gives a value to.
	boundTo = "precis_config_key"
)

// AddFlags defines --config, --set and a flag for each key that has one in the table. Defaults are not shown
// as the flags': `precis config` tells what is in force.
func AddFlags(flags *pflag.FlagSet) {
	flags.String(flagConfig, "", fmt.Sprintf("configuration `file` (default: $%s, else %s if it is there)",
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

// usage is the first sentence of what the table says of a key, and the key, so that one finds it again in a file.
// A word in backquotes would become the name of the flag's value.
func usage(k Key) string {
	sentence, _, _ := strings.Cut(k.Effect, ". ")
	return fmt.Sprintf("%s (key %s)", strings.TrimSuffix(strings.ReplaceAll(sentence, "`", ""), "."), k.Name)
}

// Bind makes a flag that the caller has defined configuration: when it is given, its value is the key's. The
// key is written with dots and holds no chosen name. Bind panics when there is no such flag or key, which is
// a mistake in the program.
func Bind(flags *pflag.FlagSet, flag, key string) {
	if _, ok := find(strings.Split(key, ".")); !ok {
		panic(fmt.Sprintf("config: flag --%s is bound to the unknown key %q", flag, key))
	}
	if err := flags.SetAnnotation(flag, boundTo, []string{key}); err != nil {
		panic(fmt.Sprintf("config: bind --%s to %s: %s", flag, key, err))
	}
}

func boundKey(f *pflag.Flag) string {
	if key := f.Annotations[boundTo]; len(key) == 1 {
		return key[0]
	}
	return ""
}
