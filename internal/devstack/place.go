package devstack

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// stackDir returns the absolute folder of the stack: wanted, or the default of Options.Dir.
func stackDir(wanted string) (string, error) {
	if wanted != "" {
		dir, err := filepath.Abs(wanted)
		if err != nil {
			return "", fmt.Errorf("find the folder of the local stack: %w", err)
		}
		return dir, nil
	}
	if root, ok := checkout(); ok {
		return filepath.Join(root, ".precis"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the folder of the local stack: the working directory is not in a checkout of "+
			"precis and %w; name a folder",
			err)
	}
	return filepath.Join(home, ".precis"), nil
}

// checkout finds the source tree of precis above the working directory, or else above the executable.
func checkout() (string, bool) {
	var from []string
	if wd, err := os.Getwd(); err == nil {
		from = append(from, wd)
	}
	if exe, err := os.Executable(); err == nil {
		if exe, err = filepath.EvalSymlinks(exe); err == nil {
			from = append(from, filepath.Dir(exe))
		}
	}
	for _, dir := range from {
		for {
			if isRoot(dir) {
				return dir, true
			}
			parent := filepath.Dir(dir)
			if parent == dir {
				break
			}
			dir = parent
		}
	}
	return "", false
}

// isRoot reports whether dir has the go.mod of precis itself, not that of a nested module.
func isRoot(dir string) bool {
	file, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, ok := strings.CutPrefix(lines.Text(), "module "); ok {
			return strings.TrimSpace(name) == "precis"
		}
	}
	return false
}

// makePrivateDir creates a folder that nobody else can list, or takes the permissions of others from it. For root,
// others can still pass through it: the user postgres has the cluster's folder below.
func makePrivateDir(dir string) error {
	mode := fs.FileMode(0o700)
	if os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&^mode == 0 {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm()&mode)
}

// makeDir creates the folder of the stack, with a .gitignore that keeps it out of version control.
func makeDir(dir string) error {
	if err := makePrivateDir(dir); err != nil {
		return fmt.Errorf("create the folder of the local stack: %w", err)
	}
	ignore := filepath.Join(dir, ".gitignore")
	if _, err := os.Lstat(ignore); errors.Is(err, fs.ErrNotExist) {
		if err := os.WriteFile(ignore, []byte("*\n"), 0o600); err != nil {
			return fmt.Errorf("create the folder of the local stack: %w", err)
		}
	}
	return nil
}
