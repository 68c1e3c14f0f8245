package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// levels joins the levels of a key in the name of a variable. koanf splits keys by it too: a dot would split the names
// of models.
const levels = "__"

// LoadOptions says where Load looks. The zero value looks in the places of a program that a person starts, without
// flags.
type LoadOptions struct {
	// File is the YAML file; "": the flag --config, else PRECIS_CONFIG, else FileName in WorkDir if it exists.
	// A file that is named and cannot be read is an error.
	File string
	// WorkDir is where relative file names begin; "": the process's working directory.
	WorkDir string
	// Environ is the environment as os.Environ gives it; nil: os.Environ().
	Environ []string
	// Flags are the parsed flags. Only those count that were given, and that AddFlags or Bind made configuration.
	Flags *pflag.FlagSet
}

// Load reads all sources and returns the effective configuration with the origin of each key that is not at its
// default. The error joins one *Error for each thing that is wrong.
//
// koanf's providers read the defaults, the environment and the flags, its parser the file; koanf merges them and fills
// the struct. By hand is what koanf and mapstructure cannot do: say where each value came from (origin.go, fileLine),
// name unknown keys and values of the wrong type by key and origin (source.go, decode.go), and give the text of
// variables and flags the type of its key (text.go).
func Load(opts LoadOptions) (Config, Origins, error) {
	if opts.Environ == nil {
		opts.Environ = os.Environ()
	}
	l := loader{koanf: koanf.New(levels), origins: Origins{}}
	if err := l.koanf.Load(structs.Provider(Defaults(), "json"), nil); err != nil {
		return Config{}, nil, fmt.Errorf("load the default configuration: %w", err)
	}
	l.loadFile(opts)
	l.loadEnviron(opts.Environ)
	l.loadFlags(opts.Flags)
	if len(l.problems) > 0 {
		return Config{}, nil, errors.Join(l.problems...)
	}

	var c Config
	conf := koanf.UnmarshalConf{DecoderConfig: decoderConfig(&c)}
	if err := l.koanf.UnmarshalWithConf("", &c, conf); err != nil {
		return Config{}, nil, fmt.Errorf("read the merged configuration: %w", err)
	}
	if err := check(c, l.origins); err != nil {
		return Config{}, nil, err
	}
	return c, l.origins, nil
}

// loader lays one source's values over those of the sources before.
type loader struct {
	koanf    *koanf.Koanf
	origins  Origins
	problems []error
}

// add lays values over what is there. from returns the origin of each key.
func (l *loader) add(values map[string]any, from func(path []string) Origin) {
	s := sourceCheck{from: from}
	checked := s.check(values)
	l.problems = append(l.problems, s.problems...)
	for _, path := range s.found {
		l.origins[dotted(path)] = from(path)
	}
	if err := l.koanf.Load(confmap.Provider(checked, ""), nil); err != nil {
		l.problems = append(l.problems, fmt.Errorf("merge the configuration: %w", err))
	}
}

func (l *loader) fail(path []string, from Origin, format string, args ...any) {
	l.problems = append(l.problems, &Error{Key: dotted(path), From: from, Problem: fmt.Sprintf(format, args...)})
}
