package devstack

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account is the user that runs PostgreSQL; nil is the current one.
type account struct {
	name     string
	uid, gid uint32
}

// postgresAccount is nil for a normal user. PostgreSQL refuses to run as root, so root runs it as postgres.
func postgresAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	found, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf(
			"%w: PostgreSQL refuses to run as root, and the user postgres does not exist (%w); "+
				"create that user with `adduser --system --group postgres`, or run precis as a normal user, or set "+
				"PRECIS_DATABASE_URL", ErrNoPostgres, err)
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the user id of postgres: %w", err)
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, fmt.Errorf("read the group id of postgres: %w", err)
	}
	return &account{name: found.Username, uid: uint32(uid), gid: uint32(gid)}, nil
}

func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// id returns the user id of the account's processes.
func (a *account) id() uint32 {
	if a == nil {
		return uint32(os.Geteuid())
	}
	return a.uid
}

// own makes the account the owner of a file.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	if err := os.Chown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("make %[2]s the owner of %[1]s: %[3]w", path, a.name, err)
	}
	return nil
}

// canUse reports whether the account can enter a folder and write there. Every folder above it must permit that too:
// nobody else can reach one below /root.
func (a *account) canUse(dir string) bool {
	cmd := exec.Command("/bin/sh", "-c", `cd "$1" && test -w .`, "sh", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.credential()}
	return cmd.Run() == nil
}
