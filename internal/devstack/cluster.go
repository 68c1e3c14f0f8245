package devstack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// clusterHome returns the folder that holds the cluster of the stack in dir, and the account that runs it. The
// folder is dir/postgres, unless that is out of the account's reach: below /root, say, for the user postgres.
// Then it is one below /var/tmp that is named after dir.
func clusterHome(dir string) (string, *account, error) {
	as, err := postgresAccount()
	if err != nil {
		return "", nil, err
	}
	home := filepath.Join(dir, "postgres")
	if !exists(home) {
		if err := os.Mkdir(home, 0o755); err != nil {
			return "", nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
		}
		if err := as.own(home); err != nil {
			return "", nil, err
		}
	}
	owner, err := ownerOf(home)
	if err != nil {
		return "", nil, err
	}
	switch {
	case owner.uid == as.id():
	case as != nil && owner.uid != 0:
		as = owner // root works on the stack of a user
	default:
		return "", nil, fmt.Errorf(
			"the cluster in %s belongs to user %d: run precis as that user or as root, or name another folder", home,
			owner.uid)
	}
	if as.canUse(home) {
		return home, as, nil
	}
	sum := sha256.Sum256([]byte(dir))
	away := filepath.Join("/var/tmp", "precis-"+hex.EncodeToString(sum[:6]))
	switch err := os.Mkdir(away, 0o755); {
	case err == nil:
		if err := as.own(away); err != nil {
			return "", nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return "", nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	// Anybody may make a folder there: one that is not ours is not to be used.
	if owner, err = ownerOf(away); err != nil {
		return "", nil, err
	}
	if owner.uid != as.id() {
		return "", nil, fmt.Errorf(
			"%s belongs to user %d and not to %s, who cannot use %s: remove it, or name another folder", away,
			owner.uid, as.name, home)
	}
	return away, as, nil
}

// ownerOf refuses what is no folder, or a link to one.
func ownerOf(dir string) (*account, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the folder of PostgreSQL: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return nil, fmt.Errorf("%s is no folder: remove it, or name another folder", dir)
	}
	return &account{name: "user " + strconv.FormatUint(uint64(stat.Uid), 10), uid: stat.Uid, gid: stat.Gid}, nil
}

// clusterVersion is the major version that a cluster was made by, and 0 where there is none.
func clusterVersion(data string) int {
	if data == "" {
		return 0
	}
	text, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return major
}

// initCluster makes home/data, under another name until it is whole: a call that is killed leaves no half of it.
func initCluster(ctx context.Context, installed installation, home string, as *account) error {
	fresh := filepath.Join(home, "data.new")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove what an interrupted start left: %w", err)
	}
	if err := makePassword(home, as); err != nil {
		return err
	}
	args := append([]string{"-D", fresh}, strings.Fields(initdbOptions)...)
	args[len(args)-1] += passwordPath(home)
	cmd := exec.CommandContext(ctx, installed.program("initdb"), args...)
	cmd.Dir, cmd.Env = home, postgresEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	cmd.WaitDelay = time.Second // its children may hold the pipe
	if out, err := cmd.CombinedOutput(); err != nil {
		return withLog(fmt.Errorf("make a PostgreSQL cluster: %w", err), strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, filepath.Join(home, "data")); err != nil {
		return fmt.Errorf("put the new cluster in place: %w", err)
	}
	return nil
}

// runningPostmaster finds the server of a cluster by the file that it keeps there. A new server does not start
// while the process that the file names is there, so the file is removed if that has ended but was never waited
// for, as happens in a container, or if its number was given to something that is no PostgreSQL. Should children
// of the old server still be at work, the new one notices that by their shared memory.
func runningPostmaster(data string) (found process, port int, ok bool) {
	file := filepath.Join(data, "postmaster.pid")
	text, err := os.ReadFile(file)
	if err != nil {
		return process{}, 0, false
	}
	// Process number, data folder, start time, port, …
	lines := strings.Split(string(text), "\n")
	if len(lines) < 4 {
		return process{}, 0, false
	}
	pid, err := strconv.Atoi(lines[0])
	if err != nil {
		return process{}, 0, false
	}
	found, err = identify(pid)
	command := commandLine(pid)
	if err != nil || !strings.Contains(command, "postgres") {
		_ = os.Remove(file) // if it stays, the server says so
		return process{}, 0, false
	}
	port, err = strconv.Atoi(lines[3])
	return found, port, err == nil && strings.Contains(command, data)
}
