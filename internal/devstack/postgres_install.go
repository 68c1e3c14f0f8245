package devstack

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// oldestPostgres is the first major version with default_toast_compression.
const oldestPostgres = 14

const installPostgres = "install it (Debian, Ubuntu: `apt install postgresql`; macOS: `brew install postgresql@17`) " +
	"or set PRECIS_DATABASE_URL to a PostgreSQL that runs elsewhere"

// postgresFolders are where packages put the binaries when they are not on PATH.
var postgresFolders = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/usr/pgsql-*/bin",          // Red Hat, from postgresql.org
	"/usr/libexec/postgresql*",  // Alpine
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin", // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/opt/local/lib/postgresql*/bin", // MacPorts
	"/usr/local/pgsql/bin",           // built from source
}

// installation is a folder with initdb and postgres.
type installation struct {
	bin     string
	major   int
	version string // in the program's own words
}

func (i installation) program(name string) string { return filepath.Join(i.bin, name) }

// findPostgres returns the installation to use: the one on PATH, else the newest. A major other than 0 allows only that
// version, because no other can open the cluster.
func findPostgres(ctx context.Context, major int) (installation, error) {
	var usable []installation
	var rejected []string
	for i, bin := range postgresCandidates() {
		found, err := inspect(ctx, bin)
		switch {
		case err != nil:
			rejected = append(rejected, fmt.Sprintf("%s: %v", bin, err))
		case found.major < oldestPostgres:
			rejected = append(rejected, fmt.Sprintf("%s is version %s, but %d is the oldest that is supported", bin,
				found.version, oldestPostgres))
		case major != 0 && found.major != major:
			rejected = append(rejected, fmt.Sprintf("%s is version %s", bin, found.version))
		case i == 0 && onPath(bin):
			return found, nil
		default:
			usable = append(usable, found)
		}
	}
	if len(usable) > 0 {
		return slices.MaxFunc(usable, func(a, b installation) int { return cmp.Compare(a.major, b.major) }), nil
	}
	seen := ""
	if len(rejected) > 0 {
		seen = " (" + strings.Join(rejected, "; ") + ")"
	}
	if major != 0 {
		return installation{}, fmt.Errorf("%w: the cluster was made by PostgreSQL %d, which is not installed%s; "+
			"install that version, or remove the cluster's folder to start with an empty one", ErrNoPostgres, major,
			seen)
	}
	return installation{}, fmt.Errorf("%w%s: %s", ErrNoPostgres, seen, installPostgres)
}

// postgresCandidates returns folders with PostgreSQL, the one on PATH first.
func postgresCandidates() []string {
	var folders []string
	if path, err := exec.LookPath("postgres"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			folders = append(folders, filepath.Dir(path))
		}
	}
	for _, pattern := range postgresFolders {
		matches, _ := filepath.Glob(pattern) // the only error is a malformed pattern
		for _, folder := range matches {
			if _, err := os.Stat(filepath.Join(folder, "postgres")); err == nil && !slices.Contains(folders, folder) {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

func onPath(bin string) bool {
	path, err := exec.LookPath("postgres")
	if err != nil {
		return false
	}
	path, err = filepath.EvalSymlinks(path)
	return err == nil && filepath.Dir(path) == bin
}

func inspect(ctx context.Context, bin string) (installation, error) {
	if _, err := os.Stat(filepath.Join(bin, "initdb")); err != nil {
		return installation{}, fmt.Errorf("has no initdb")
	}
	out, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return installation{}, fmt.Errorf("postgres --version: %w", err)
	}
	// postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1), or 18beta1
	fields := strings.Fields(string(out))
	if len(fields) < 3 {
		return installation{}, fmt.Errorf("postgres --version says %q", out)
	}
	digits := strings.FieldsFunc(fields[2], func(r rune) bool { return r < '0' || r > '9' })
	if len(digits) == 0 {
		return installation{}, fmt.Errorf("postgres --version says %q", out)
	}
	major, err := strconv.Atoi(digits[0])
	if err != nil {
		return installation{}, fmt.Errorf("postgres --version says %q", out)
	}
	return installation{bin: bin, major: major, version: fields[2]}, nil
}
