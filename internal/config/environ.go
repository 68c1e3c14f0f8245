package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/knadh/koanf/providers/env/v2"
)

const envPrefix = "PRECIS_"

// OtherTools are the variables of other tools that give our keys their values, where no variable of ours does. Those of
// Temporal are the names that its own clients read.
var OtherTools = []struct{ Variable, Key string }{
	{"ANTHROPIC_API_KEY", "vendors.anthropic.api_key"},
	{"ANTHROPIC_BASE_URL", "vendors.anthropic.base_url"},
	{"OPENAI_API_KEY", "vendors.openai.api_key"},
	{"OPENAI_BASE_URL", "vendors.openai.base_url"},
	{"XAI_API_KEY", "vendors.xai.api_key"},
	{"GEMINI_API_KEY", "vendors.google.api_key"},
	{"TEMPORAL_ADDRESS", "temporal.address"},
	{"TEMPORAL_NAMESPACE", "temporal.namespace"},
	{"TEMPORAL_API_KEY", "temporal.api_key"},
	{"TEMPORAL_TLS", "temporal.tls.enabled"},
	{"TEMPORAL_TLS_CLIENT_CERT_PATH", "temporal.tls.cert_file"},
	{"TEMPORAL_TLS_CLIENT_CERT_DATA", "temporal.tls.cert_data"},
	{"TEMPORAL_TLS_CLIENT_KEY_PATH", "temporal.tls.key_file"},
	{"TEMPORAL_TLS_CLIENT_KEY_DATA", "temporal.tls.key_data"},
	{"TEMPORAL_TLS_SERVER_CA_CERT_PATH", "temporal.tls.ca_file"},
	{"TEMPORAL_TLS_SERVER_CA_CERT_DATA", "temporal.tls.ca_data"},
	{"TEMPORAL_TLS_SERVER_NAME", "temporal.tls.server_name"},
	{"TEMPORAL_TLS_DISABLE_HOST_VERIFICATION", "temporal.tls.insecure_skip_verify"},
}

// notConfiguration reports whether a variable with our prefix is not a key: the one that names the file, and those
// that only tests read.
func notConfiguration(variable string) bool {
	return slices.Contains([]string{FileVariable, "PRECIS_CORPUS", "PRECIS_CASES", "PRECIS_UPDATE_GOLDEN"}, variable) ||
		strings.HasPrefix(variable, "PRECIS_TEST_")
}

// Variable returns the name of the environment variable for a key, "" when a part of the key cannot be in such a name,
// as the slash and the dots of a model's name. Such a key is given with its section:
// PRECIS_PRICES='{openai/gpt-4.1: {input: 2}}'.
func Variable(path []string) string {
	for _, part := range path {
		if strings.ContainsAny(part, "/.-") {
			return ""
		}
	}
	return envPrefix + strings.ToUpper(strings.Join(path, levels))
}

// otherToolsPath returns the key of a variable of another tool, nil for any other variable.
func otherToolsPath(variable string) []string {
	for _, v := range OtherTools {
		if v.Variable == variable {
			return strings.Split(v.Key, ".")
		}
	}
	return nil
}

// ownPath returns the key of a variable of ours, nil for any other variable.
func ownPath(variable string) []string {
	key, ours := strings.CutPrefix(variable, envPrefix)
	if !ours || notConfiguration(variable) {
		return nil
	}
	return strings.Split(strings.ToLower(key), levels)
}

// loadEnviron reads the variables of other tools first, so that ours beat them. A variable that holds a whole section
// sorts before those of the section's keys, which beat it.
func (l *loader) loadEnviron(environ []string) {
	sorted := slices.SortedStableFunc(slices.Values(environ), func(a, b string) int {
		before, _, _ := strings.Cut(a, "=")
		after, _, _ := strings.Cut(b, "=")
		return cmp.Compare(before, after)
	})
	for _, pathOf := range []func(variable string) []string{otherToolsPath, ownPath} {
		for _, entry := range sorted {
			l.loadVariable(entry, pathOf)
		}
	}
}

// loadVariable reads one variable, as NAME=VALUE. An empty one counts as unset: Compose and CI systems pass on what
// nobody set as an empty variable.
func (l *loader) loadVariable(entry string, pathOf func(variable string) []string) {
	name, _, _ := strings.Cut(entry, "=")
	values, err := env.Provider(levels, env.Opt{
		EnvironFunc: func() []string { return []string{entry} },
		TransformFunc: func(variable, text string) (string, any) {
			path := pathOf(variable)
			if path == nil || text == "" {
				return "", nil
			}
			return strings.Join(path, levels), typed(path, text)
		},
	}).Read()
	if err != nil {
		l.problems = append(l.problems, fmt.Errorf("read the variable %s: %w", name, err))
		return
	}
	l.add(values, func([]string) Origin { return Origin{Source: SourceEnv, Name: name} })
}
