//go:build unix && !linux

package devstack

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// startOf returns when a process was started, as a word that differs for another process of the same number. A
// process that has ended is syscall.ESRCH, waited for or not.
func startOf(pid int) (string, error) {
	state, started, ok := strings.Cut(ps(pid, "stat=,lstart="), " ")
	if !ok || strings.HasPrefix(state, "Z") {
		return "", syscall.ESRCH
	}
	return strings.TrimSpace(started), nil
}

// commandLine returns the command line of a process, "" when it has ended.
func commandLine(pid int) string { return ps(pid, "args=") }

func ps(pid int, columns string) string {
	cmd := exec.Command("ps", "-ww", "-o", columns, "-p", strconv.Itoa(pid))
	cmd.Env = []string{"LC_ALL=C", "PATH=/bin:/usr/bin"}
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
