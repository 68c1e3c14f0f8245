// Package compose checks the container files without a container engine: docker-compose.yml against the Compose
// specification, by the loader of docker compose itself, and the files that it and the Dockerfile refer to.
package compose

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// root is the folder of the repository.
const root = "../.."

// required are the variables without which the file must not load.
var required = []string{"POSTGRES_PASSWORD", "POSTGRES_PRECIS_PASSWORD", "POSTGRES_TEMPORAL_PASSWORD"}

// load loads the file as docker compose would: schema, interpolation, paths, references between services.
func load(t *testing.T, env types.Mapping) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return loader.LoadWithContext(context.Background(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml")}},
		Environment: env,
	})
}

func passwords() types.Mapping {
	env := types.Mapping{}
	for _, name := range required {
		env[name] = "value-of-" + name
	}
	return env
}

func project(t *testing.T) *types.Project {
	t.Helper()
	p, err := load(t, passwords())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestServices(t *testing.T) {
	t.Parallel()
	want := []string{
		"api", "migrate", "postgres", "temporal", "temporal-schema", "temporal-setup", "temporal-ui",
		"worker",
	}
	if got := project(t).ServiceNames(); !slices.Equal(slices.Sorted(slices.Values(got)), want) {
		t.Errorf("services %v, want %v", got, want)
	}
}

func TestEachPasswordIsRequired(t *testing.T) {
	t.Parallel()
	for _, name := range required {
		env := passwords()
		delete(env, name)
		_, err := load(t, env)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: error %v, want one that names it", name, err)
		}
	}
}

func TestConditionsOfDependenciesCanBeMet(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range p.Services {
		for on, d := range s.DependsOn {
			other := p.Services[on]
			switch d.Condition {
			case types.ServiceConditionHealthy:
				if other.HealthCheck == nil || len(other.HealthCheck.Test) == 0 {
					t.Errorf("%s waits until %s is healthy, but that has no health check", name, on)
				}
			case types.ServiceConditionCompletedSuccessfully:
				if other.Restart == types.RestartPolicyAlways || other.Restart == types.RestartPolicyUnlessStopped {
					t.Errorf("%s waits until %s has ended, but that is restarted whenever it ends", name, on)
				}
			default:
				t.Errorf("%s depends only on the start of %s", name, on)
			}
		}
	}
}

func TestImagesArePinned(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range p.Services {
		_, tag, _ := strings.Cut(s.Image, ":")
		if tag == "" || tag == "latest" {
			t.Errorf("%s: image %q has no fixed tag", name, s.Image)
		}
	}
	// The tools that create the schema must have the server's version.
	_, server, _ := strings.Cut(p.Services["temporal"].Image, ":")
	for _, name := range []string{"temporal-schema", "temporal-setup"} {
		if _, tools, _ := strings.Cut(p.Services[name].Image, ":"); tools != server {
			t.Errorf("%s has version %s, the server has %s", name, tools, server)
		}
	}
}

func TestPortsArePublishedOnLoopbackOnly(t *testing.T) {
	t.Parallel()
	for name, s := range project(t).Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, p.Published, p.HostIP)
			}
		}
	}
}

func TestMountedFilesExist(t *testing.T) {
	t.Parallel()
	n := 0
	for name, s := range project(t).Services {
		for _, v := range s.Volumes {
			if v.Type != types.VolumeTypeBind {
				continue
			}
			n++
			info, err := os.Stat(v.Source)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if !info.Mode().IsRegular() || info.Mode().Perm()&0o004 == 0 {
				t.Errorf("%s mounts %s, which is not a file that every user can read", name, v.Source)
			}
			if !v.ReadOnly {
				t.Errorf("%s mounts %s writable", name, v.Source)
			}
		}
	}
	if n == 0 {
		t.Error("no file is mounted at all: this test looks at the wrong thing")
	}
}

func TestScriptsAreMounted(t *testing.T) {
	t.Parallel()
	for name, s := range project(t).Services {
		for _, arg := range s.Entrypoint {
			if !strings.HasPrefix(arg, "/precis/") {
				continue
			}
			if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == arg }) {
				t.Errorf("%s runs %s, which is not mounted", name, arg)
			}
		}
	}
}

func TestDynamicConfigurationIsMounted(t *testing.T) {
	t.Parallel()
	s := project(t).Services["temporal"]
	path := s.Environment["DYNAMIC_CONFIG_FILE_PATH"]
	if path == nil || !slices.ContainsFunc(s.Volumes,
		func(v types.ServiceVolumeConfig) bool { return v.Target == *path }) {
		t.Errorf("the server reads %v, which is not mounted", path)
	}
}

// TestNoSecretIsInTheFile finds secrets that are written in the file and not taken from the environment.
func TestNoSecretIsInTheFile(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`(?i)(password|pwd|secret|_key)$`)
	for name, s := range project(t).Services {
		for _, variable := range slices.Sorted(maps.Keys(s.Environment)) {
			value := s.Environment[variable]
			if secret.MatchString(variable) && value != nil && *value != "" && !strings.HasPrefix(*value, "value-of-") {
				t.Errorf("%s: the value of %s is in the file", name, variable)
			}
		}
	}
}

func TestDockerfileRefersToExistingFiles(t *testing.T) {
	t.Parallel()
	f, err := os.Open(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var copied, built []string
	user := ""
	packages := regexp.MustCompile(`go build .* (\./\S+)`)
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		fields := strings.Fields(line)
		switch {
		case len(fields) > 2 && fields[0] == "COPY" && !strings.HasPrefix(fields[1], "--from"):
			copied = append(copied, fields[1:len(fields)-1]...)
		case len(fields) == 2 && fields[0] == "USER":
			user = fields[1]
		}
		if m := packages.FindStringSubmatch(strings.TrimSuffix(line, `&& \`)); m != nil {
			built = append(built, m[1])
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"./starter", "./worker"}; !slices.Equal(built, want) {
		t.Errorf("the Dockerfile builds %v, want %v", built, want)
	}
	for _, path := range slices.Concat(copied, built) {
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Error(err)
		}
	}
	if user == "" || user == "root" || user == "0" {
		t.Errorf("the image runs as %q", user)
	}
}

func TestImageIsBuiltWithTheToolchainOfTheModule(t *testing.T) {
	t.Parallel()
	dockerfile, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`(?m)^FROM golang:(\d+\.\d+)`).FindSubmatch(dockerfile)
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	if image == nil || language == nil || string(image[1]) != string(language[1]) {
		t.Errorf("the Dockerfile builds with Go %s, but go.mod needs %s", image[1:], language[1:])
	}
}

// The health checks use the program itself, because the image has no shell.
func TestOurServicesHaveHealthChecks(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, name := range []string{"api", "worker"} {
		s := p.Services[name]
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 3 || s.HealthCheck.Test[0] != "CMD" ||
			s.HealthCheck.Test[1] != "/usr/local/bin/precis" || s.HealthCheck.Test[2] != "ready" {
			t.Errorf("%s: health check %+v", name, s.HealthCheck)
		}
		if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < 50*time.Second {
			t.Errorf("%s is killed after %v, which is too early", name, s.StopGracePeriod)
		}
	}
}

// The published port is the one on which the API listens, on every address of its container.
func TestAPIListensOnThePublishedPort(t *testing.T) {
	t.Parallel()
	s := project(t).Services["api"]
	addr := s.Environment["PRECIS_HTTP__ADDR"]
	if addr == nil || len(s.Ports) != 1 || *addr != fmt.Sprintf("0.0.0.0:%d", s.Ports[0].Target) {
		t.Errorf("the API listens on %v and publishes %+v", addr, s.Ports)
	}
}

// The file and the page show the same command for the first API key, and its service exists.
func TestCommandForTheFirstKey(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`docker compose run --rm (\S+) (\S+) keys create --tenant \S+ --name \S+`)
	for _, name := range []string{"docker-compose.yml", "docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		m := command.FindStringSubmatch(string(text))
		if m == nil {
			t.Errorf("%s does not show how to create the first API key", name)
			continue
		}
		s, ok := project(t).Services[m[1]]
		if !ok || len(s.Command) == 0 || s.Command[0] != m[2] || s.Environment["PRECIS_DATABASE_URL"] == nil {
			t.Errorf("%s: the service of %s cannot run the command", name, m[0])
		}
	}
}
