package devstack

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// binaryPrefix begins the name of every built Temporal server. The rest is a hash of its source.
const binaryPrefix = "temporal-"

var buildArgs = []string{
	"build",
	"-tags", "disable_grpc_modules", // leaves out clients of cloud storage
	"-trimpath", "-ldflags", "-s -w",
	"-buildvcs=false", // git refuses to read a checkout of another user
}

// temporalSource returns the folder of the nested module. Go cannot embed files of another module, so the server can
// only be built where the checkout is.
func temporalSource() (string, error) {
	root, ok := checkout()
	if !ok {
		return "", fmt.Errorf("%w: its source is in the checkout of precis, and neither the working directory nor "+
			"the executable is in one; "+
			"run precis from there, or set PRECIS_TEMPORAL__ADDRESS to a Temporal that runs elsewhere", ErrNoTemporal)
	}
	return filepath.Join(root, "internal", "devstack", "temporal"), nil
}

// temporalBinary returns the path of the server built from source, whether it exists or not.
func temporalBinary(dir, source string) (string, error) {
	hash, err := hashSource(source)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoTemporal, err)
	}
	return filepath.Join(dir, "bin", binaryPrefix+hash), nil
}

// hashSource returns a hash that changes whenever a build would have another result.
func hashSource(source string) (string, error) {
	files, err := filepath.Glob(filepath.Join(source, "*.go"))
	if err != nil {
		return "", err
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	files = append(files, filepath.Join(source, "go.mod"), filepath.Join(source, "go.sum"))
	sum := sha256.New()
	fmt.Fprintln(sum, runtime.GOOS, runtime.GOARCH, buildArgs)
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(sum, filepath.Base(name), len(content))
		_, _ = sum.Write(content) // writing to a hash cannot fail
	}
	return hex.EncodeToString(sum.Sum(nil))[:16], nil
}

// buildTemporal returns the server's binary and builds it if it does not exist. Concurrent processes build it once.
// Older binaries are removed.
func buildTemporal(ctx context.Context, opts Options) (string, error) {
	source, err := temporalSource()
	if err != nil {
		return "", err
	}
	binary, err := temporalBinary(opts.Dir, source)
	if err != nil {
		return "", err
	}
	if exists(binary) {
		return binary, nil
	}
	if err := makeDir(opts.Dir); err != nil {
		return "", err
	}
	bin := filepath.Dir(binary)
	if err := makePrivateDir(bin); err != nil {
		return "", fmt.Errorf("create a folder for the Temporal server: %w", err)
	}
	err = opts.step("building the Temporal server, once (2 to 5 minutes on a small machine)",
		func(at func(string)) error {
			unlock, err := lock(ctx, filepath.Join(bin, "lock"), func() { at("another process builds it") })
			if err != nil {
				return err
			}
			defer unlock()
			if exists(binary) {
				return nil
			}
			fresh := filepath.Join(bin, "new")
			if err := compile(ctx, source, fresh, at); err != nil {
				return err
			}
			old, _ := filepath.Glob(filepath.Join(bin, binaryPrefix+"*"))
			for _, name := range old {
				_ = os.Remove(name) // a running one keeps running
			}
			return os.Rename(fresh, binary)
		})
	if err != nil {
		return "", err
	}
	return binary, nil
}

// compile builds the server and reports each package that is compiled.
func compile(ctx context.Context, source, binary string, at func(string)) error {
	tool, err := exec.LookPath("go")
	if err != nil {
		return fmt.Errorf(
			"%w: %w; install Go (https://go.dev/dl), or set PRECIS_TEMPORAL__ADDRESS to a Temporal that runs elsewhere",
			ErrNoTemporal, err)
	}
	cmd := exec.CommandContext(ctx, tool, append(slices.Clone(buildArgs), "-v", "-o", binary, ".")...)
	cmd.Dir = source
	// The caller's flags and workspace are for another module. Without cgo no C compiler is needed.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // lets it stop its compilers
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return fmt.Errorf("build the Temporal server: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("build the Temporal server: %w", err)
	}
	output := follow(stderr, at)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %w\n%s", ErrNoTemporal, cmp.Or(context.Cause(ctx), err), output)
	}
	return nil
}

// follow reads to the end, reports each package name, and returns the last other lines, which are the errors.
func follow(stderr io.Reader, at func(string)) string {
	var last []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		line := lines.Text()
		if !strings.Contains(line, " ") || strings.HasPrefix(line, "go: downloading ") {
			at(strings.TrimPrefix(line, "go: "))
			continue
		}
		if last = append(last, line); len(last) > 20 {
			last = last[1:]
		}
	}
	return strings.Join(last, "\n")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
