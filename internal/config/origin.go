package config

import "fmt"

// Source is the kind of place where a value was given.
type Source string

// The sources. Each overrides the ones before it.
const (
	SourceDefault Source = "default"
	SourceFile    Source = "file"
	SourceEnv     Source = "environment"
	SourceFlag    Source = "flag"
	// SourceTenant overrides all of them, for the settings of a compaction only. Load does not use it.
	SourceTenant Source = "tenant"
)

// Origin is where a value came from.
type Origin struct {
	Source Source `json:"source"`
	// Name is the file's path, the variable's, the flag's or the tenant's name; "" for a default.
	Name string `json:"name,omitempty"`
	// Line in the file, from 1; 0 when it is unknown, as for a value that came through a YAML merge key.
	Line int `json:"line,omitempty"`
}

// String says where to look, in a few characters: "default", "precis.yaml:12", "$OPENAI_API_KEY", "--dir".
func (o Origin) String() string {
	switch o.Source {
	case SourceFile:
		if o.Line > 0 {
			return fmt.Sprintf("%s:%d", o.Name, o.Line)
		}
		return o.Name
	case SourceEnv:
		return "$" + o.Name
	case SourceFlag:
		return "--" + o.Name
	case SourceTenant:
		return "tenant " + o.Name
	default:
		return string(SourceDefault)
	}
}

// Origins says for each key, in its dotted form, where its value came from. A key without an entry has its default.
type Origins map[string]Origin

// Of returns the origin of a key.
func (o Origins) Of(key string) Origin {
	if from, ok := o[key]; ok {
		return from
	}
	return Origin{Source: SourceDefault}
}

// Error is one thing that is wrong with the configuration. Load joins all that it finds; errors.As finds the first.
type Error struct {
	// Key in its dotted form, such as settings.trigger.fraction; "" when the file as a whole is wrong.
	Key string
	// From is where the value was given.
	From Origin
	// Problem says what is wrong and what would be right. It never contains a secret.
	Problem string
}

func (e *Error) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("%s: %s", e.From, e.Problem)
	}
	return fmt.Sprintf("%s (%s): %s", e.Key, e.From, e.Problem)
}
