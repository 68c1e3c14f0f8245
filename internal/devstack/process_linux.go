package devstack

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// startOf returns when a process was started, as a word that differs for another process of the same number, before
// and after a restart of the machine. A process that has ended is syscall.ESRCH, waited for or not.
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", syscall.ESRCH
	}
	// After the name, which is in parentheses and may hold any character: state, …, and 22nd of all the clock
	// ticks since boot.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("unexpected content of /proc/%d/stat", pid)
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return "", syscall.ESRCH
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(boot)) + "/" + fields[19], nil
}

// commandLine returns the command line of a process, "" when it has ended.
func commandLine(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(string(line), "\x00", " ")
}
