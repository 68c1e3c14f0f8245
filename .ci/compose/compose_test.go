// Package compose checks the container files where no container engine runs: docker-compose.yml against the
// Compose specification, by the loader that docker compose itself uses, and what it and the Dockerfile refer to.
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

// root is the checkout.
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

func TestItLoadsWithTheServicesItShouldHave(t *testing.T) {
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

func TestWhatItWaitsForCanHappen(t *testing.T) {
	t.Parallel()
	p := project(t)
	for name, s := range p.Services {
		for on, d := range s.DependsOn {
			other := p.Services[on]
			switch d.Condition {
			case types.ServiceConditionHealthy:
				if other.HealthCheck == nil || len(other.HealthCheck.Test) == 0 {
					t.Errorf("%s waits until %s is healthy, which has no health check", name, on)
				}
			case types.ServiceConditionCompletedSuccessfully:
				if other.Restart == types.RestartPolicyAlways || other.Restart == types.RestartPolicyUnlessStopped {
					t.Errorf("%s waits until %s has ended, which is restarted whenever it ends", name, on)
				}
			default:
				t.Errorf("%s depends on %s being merely started", name, on)
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
	// The tools that set the schema up must be of the server's version.
	_, server, _ := strings.Cut(p.Services["temporal"].Image, ":")
	for _, name := range []string{"temporal-schema", "temporal-setup"} {
		if _, tools, _ := strings.Cut(p.Services[name].Image, ":"); tools != server {
			t.Errorf("%s is of version %s, the server of %s", name, tools, server)
		}
	}
}

func TestPortsArePublishedOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for name, s := range project(t).Services {
		for _, p := range s.Ports {
			if p.HostIP != "127.0.0.1" {
				t.Errorf("%s publishes %s on %q", name, p.Published, p.HostIP)
			}
		}
	}
}

func TestMountedFilesAreThere(t *testing.T) {
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
				t.Errorf("%s mounts %s, which is no file that any user can read", name, v.Source)
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

func TestScriptsThatAreRunAreMounted(t *testing.T) {
	t.Parallel()
	for name, s := range project(t).Services {
		for _, arg := range s.Entrypoint {
			if !strings.HasPrefix(arg, "/precis/") {
				continue
			}
			if !slices.ContainsFunc(s.Volumes, func(v types.ServiceVolumeConfig) bool { return v.Target == arg }) {
				t.Errorf("%s runs %s, which nothing mounts", name, arg)
			}
		}
	}
}

func TestTheDynamicConfigurationIsTheOneThatIsMounted(t *testing.T) {
	t.Parallel()
	s := project(t).Services["temporal"]
	path := s.Environment["DYNAMIC_CONFIG_FILE_PATH"]
	if path == nil || !slices.ContainsFunc(s.Volumes,
		func(v types.ServiceVolumeConfig) bool { return v.Target == *path }) {
		t.Errorf("the server reads %v, which nothing mounts", path)
	}
}

// TestNoSecretIsInTheFile looks for values of variables that hold secrets written out instead of taken from
// the environment.
func TestNoSecretIsInTheFile(t *testing.T) {
	t.Parallel()
	secret := regexp.MustCompile(`(?i)(password|pwd|secret|_key)$`)
	for name, s := range project(t).Services {
		for _, variable := range slices.Sorted(maps.Keys(s.Environment)) {
			value := s.Environment[variable]
			if secret.MatchString(variable) && value != nil && *value != "" && !strings.HasPrefix(*value, "value-of-") {
				t.Errorf("%s: %s is written out in the file", name, variable)
			}
		}
	}
}

func TestDockerfileRefersToWhatIsThere(t *testing.T) {
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
		t.Errorf("it builds %v, want %v", built, want)
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

func TestTheImageIsBuiltWithTheToolchainOfTheModule(t *testing.T) {
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
		t.Errorf("Dockerfile builds with Go %s, go.mod asks for %s", image[1:], language[1:])
	}
}

// What listens for other machines is asked whether it is ready, by the program that the image has: it has no shell.
func TestOurServicesAreAskedWhetherTheyAreReady(t *testing.T) {
	t.Parallel()
	p := project(t)
	for _, name := range []string{"api", "worker"} {
		s := p.Services[name]
		if s.HealthCheck == nil || len(s.HealthCheck.Test) < 3 || s.HealthCheck.Test[0] != "CMD" ||
			s.HealthCheck.Test[1] != "/usr/local/bin/precis" || s.HealthCheck.Test[2] != "ready" {
			t.Errorf("%s: health check %+v", name, s.HealthCheck)
		}
		if s.StopGracePeriod == nil || time.Duration(*s.StopGracePeriod) < 50*time.Second {
			t.Errorf("%s is killed after %v", name, s.StopGracePeriod)
		}
	}
}

// The port that is published is the one on which the API listens, on every address of its container.
func TestTheAPIListensWhereItIsPublished(t *testing.T) {
	t.Parallel()
	s := project(t).Services["api"]
	addr := s.Environment["PRECIS_HTTP__ADDR"]
	if addr == nil || len(s.Ports) != 1 || *addr != fmt.Sprintf("0.0.0.0:%d", s.Ports[0].Target) {
		t.Errorf("it listens on %v and publishes %+v", addr, s.Ports)
	}
}

// How a key is made is told in the file and on the page as the same command, which runs a service that there is.
func TestTheFirstKeyIsMadeAsTold(t *testing.T) {
	t.Parallel()
	command := regexp.MustCompile(`docker compose run --rm (\S+) (\S+) keys create --tenant \S+ --name \S+`)
	for _, name := range []string{"docker-compose.yml", "docs/operations.md"} {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			t.Fatal(err)
		}
		m := command.FindStringSubmatch(string(text))
		if m == nil {
			t.Errorf("%s does not tell how the first API key is made", name)
			continue
		}
		s, ok := project(t).Services[m[1]]
		if !ok || len(s.Command) == 0 || s.Command[0] != m[2] || s.Environment["PRECIS_DATABASE_URL"] == nil {
			t.Errorf("%s: %s cannot be run", name, m[0])
		}
	}
}
