package config

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"
)

// interpolation is Compose's ${NAME}, ${NAME:-default} and ${NAME:?message}.
var interpolation = regexp.MustCompile(`\$\{([A-Z_]+)(?::([-?])([^}]*))?\}`)

// TestComposeGivesAConfigurationThatLoads loads the environment and the file that docker-compose.yml gives our own
// containers, with nothing set and with a vendor's key set.
func TestComposeGivesAConfigurationThatLoads(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	content, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Environment map[string]string
			Command     []string
		}
	}
	if err := yaml.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"api", "migrate", "worker"} {
		for name, set := range map[string]map[string]string{
			"nothing set":  {},
			"a vendor set": {"ANTHROPIC_API_KEY": "key-of-the-vendor"},
		} {
			var environ []string
			for variable, value := range file.Services[service].Environment {
				value = interpolation.ReplaceAllStringFunc(value, func(s string) string {
					m := interpolation.FindStringSubmatch(s)
					if v, ok := set[m[1]]; ok {
						return v
					}
					if m[2] == "-" {
						return m[3]
					}
					return ""
				})
				environ = append(environ, variable+"="+value)
			}
			c, _, err := Load(LoadOptions{Environ: environ, File: filepath.Join(root, "deploy", "precis.yaml")})
			if err != nil {
				t.Errorf("%s, %s: %s", service, name, err)
				continue
			}
			if c.DatabaseURL == "" || c.Temporal.Address != "temporal:7233" || c.Log.Format != "json" {
				t.Errorf("%s, %s: database %q, Temporal %q, log %q", service, name, c.DatabaseURL, c.Temporal.Address,
					c.Log.Format)
			}
			if want := map[string]string{"api": "0.0.0.0:8700"}[service]; want != "" && c.HTTP.Addr != want {
				t.Errorf("%s, %s: it listens on %q", service, name, c.HTTP.Addr)
			}
			if c.Worker.MetricsAddr != "0.0.0.0:9464" {
				t.Errorf("%s, %s: metrics on %q", service, name, c.Worker.MetricsAddr)
			}
			if got := c.Vendors["anthropic"].APIKey; service == "worker" && got != set["ANTHROPIC_API_KEY"] {
				t.Errorf("%s, %s: vendor's key %q", service, name, got)
			}
		}
	}
}
