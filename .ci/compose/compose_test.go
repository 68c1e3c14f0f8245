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

// Each container has a read-only root and no capability, gains no rights, and is bounded in memory and processes.
func TestContainersAreConfined(t *testing.T) {
	t.Parallel()
	for name, s := range project(t).Services {
		if !s.ReadOnly {
			t.Errorf("%s can write to its root file system", name)
		}
		if !slices.Equal(s.CapDrop, []string{"ALL"}) || len(s.CapAdd) > 0 || s.Privileged {
			t.Errorf("%s keeps capabilities: dropped %v, added %v", name, s.CapDrop, s.CapAdd)
		}
		if !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s can gain privileges", name)
		}
		if s.MemLimit <= 0 || s.PidsLimit <= 0 {
			t.Errorf("%s is not bounded: memory %d, processes %d", name, s.MemLimit, s.PidsLimit)
		}
		if s.User == "root" || s.User == "0" {
			t.Errorf("%s runs as root", name)
		}
		for _, v := range s.Volumes {
			if strings.Contains(v.Source, "docker.sock") {
				t.Errorf("%s can control the container engine", name)
			}
		}
	}
}

// The database is reached only by what works with it, and has no way out; nor do containers that call nobody.
func TestNetworksAreSeparate(t *testing.T) {
	t.Parallel()
	p := project(t)
	out := map[string]bool{}
	for key, n := range p.Networks {
		out[key] = !n.Internal
	}
	mayLeave := []string{"api", "temporal", "temporal-ui", "worker"}
	for name, s := range p.Services {
		if s.NetworkMode != "" || len(s.Networks) == 0 {
			t.Errorf("%s is on no network of its own: mode %q, networks %v", name, s.NetworkMode, s.Networks)
		}
		for key := range s.Networks {
			if out[key] && !slices.Contains(mayLeave, name) {
				t.Errorf("%s is on %s, which has a way out", name, key)
			}
		}
		if _, ok := s.Networks["data"]; ok && name == "temporal-ui" {
			t.Errorf("%s can reach the database", name)
		}
	}
	for key := range out {
		if key == "default" {
			t.Error("a service is on the default network")
		}
	}
}

// The script that pins images by digest knows each image of the file and of the Dockerfile.
func TestEveryImageCanBePinned(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(filepath.Join(root, "deploy", "pin-images.sh"))
	if err != nil {
		t.Fatal(err)
	}
	var images []string
	for name, s := range project(t).Services {
		if s.Build == nil {
			images = append(images, s.Image)
			continue
		}
		for _, arg := range []string{"GO_IMAGE", "BASE_IMAGE"} {
			if s.Build.Args[arg] == nil {
				t.Errorf("%s is built without %s", name, arg)
				continue
			}
			images = append(images, *s.Build.Args[arg])
		}
	}
	for _, image := range images {
		if !strings.Contains(string(script), " "+image+"\n") {
			t.Errorf("deploy/pin-images.sh does not pin %s", image)
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^pin (\w+) `).FindAllStringSubmatch(string(script), -1) {
		env := passwords()
		env[m[1]] = "registry.example/image@sha256:0"
		p, err := load(t, env)
		if err != nil {
			t.Fatal(err)
		}
		used := false
		for _, s := range p.Services {
			used = used || s.Image == env[m[1]]
			used = used || s.Build != nil && s.Build.Args[m[1]] != nil && *s.Build.Args[m[1]] == env[m[1]]
		}
		if !used {
			t.Errorf("the file does not read %s", m[1])
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
	image := regexp.MustCompile(`(?m)^ARG GO_IMAGE=golang:(\d+\.\d+)`).FindSubmatch(dockerfile)
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
