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

// clusterHome returns the folder of the cluster of the stack in dir, and the account that runs it. The folder is
// dir/postgres, unless the account cannot reach it, as the user postgres cannot reach /root. Then it is a folder below
// /var/tmp that is named after a hash of dir.
func clusterHome(dir string) (string, *account, error) {
	as, err := postgresAccount()
	if err != nil {
		return "", nil, err
	}
	home := filepath.Join(dir, "postgres")
	if !exists(home) {
		if err := os.Mkdir(home, 0o700); err != nil {
			return "", nil, fmt.Errorf("create a folder for PostgreSQL: %w", err)
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
		as = owner // root uses the stack of another user
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
	switch err := os.Mkdir(away, 0o700); {
	case err == nil:
		if err := as.own(away); err != nil {
			return "", nil, err
		}
	case !errors.Is(err, fs.ErrExist):
		return "", nil, fmt.Errorf("create a folder for PostgreSQL: %w", err)
	}
	// Anybody can create a folder there: one of another user must not be used.
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

// ownerOf returns the owner of a folder. It refuses anything that is not a folder, such as a link to one.
func ownerOf(dir string) (*account, error) {
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("read the owner of the folder of PostgreSQL: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder: remove it, or name another folder", dir)
	}
	return &account{name: "user " + strconv.FormatUint(uint64(stat.Uid), 10), uid: stat.Uid, gid: stat.Gid}, nil
}

// clusterVersion returns the major version of PostgreSQL that made a cluster, 0 without a cluster.
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

// initCluster makes home/data. It has another name until it is complete, so that an interrupted call leaves no
// incomplete cluster.
func initCluster(ctx context.Context, installed installation, home string, as *account) error {
	fresh := filepath.Join(home, "data.new")
	if err := os.RemoveAll(fresh); err != nil {
		return fmt.Errorf("remove the remains of an interrupted start: %w", err)
	}
	if err := makePassword(home, as); err != nil {
		return err
	}
	args := append([]string{"-D", fresh}, strings.Fields(initdbOptions)...)
	args[len(args)-1] += passwordPath(home)
	cmd := exec.CommandContext(ctx, installed.program("initdb"), args...)
	cmd.Dir, cmd.Env = home, postgresEnv()
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as.credential()}
	cmd.WaitDelay = time.Second // its children may keep the pipe open
	if out, err := cmd.CombinedOutput(); err != nil {
		return withLog(fmt.Errorf("make a PostgreSQL cluster: %w", err), strings.TrimSpace(string(out)))
	}
	if err := os.Rename(fresh, filepath.Join(home, "data")); err != nil {
		return fmt.Errorf("move the new cluster into place: %w", err)
	}
	return nil
}

// runningPostmaster finds the server of a cluster by its postmaster.pid. A new server does not start while the process
// in that file exists. The file is therefore removed if that process has ended but was never waited for, as happens in
// a container, or if its number now belongs to something other than PostgreSQL. Children of the old server that still
// run are noticed by the new one, by their shared memory.
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
		_ = os.Remove(file) // if it cannot be removed, the server says so
		return process{}, 0, false
	}
	port, err = strconv.Atoi(lines[3])
	return found, port, err == nil && strings.Contains(command, data)
}
