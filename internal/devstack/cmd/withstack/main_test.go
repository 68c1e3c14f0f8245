package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"precis/internal/devstack"
)

// selfVariable makes the test binary the command itself.
const selfVariable = "WITHSTACK_TEST_SELF"

func TestMain(m *testing.M) {
	if os.Getenv(selfVariable) != "" {
		main()
	}
	os.Exit(m.Run())
}

func self(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), selfVariable+"=1")
	return cmd
}

func TestWithstack(t *testing.T) {
	t.Parallel()

	t.Run("GivesTheAddressesAndPassesTheCode", func(t *testing.T) {
		t.Parallel()
		cmd := self("--", "sh", "-c", `echo "$`+devstack.TestDatabaseVariable+` $`+devstack.TestTemporalVariable+
			`"; exit 7`)
		out, err := cmd.Output()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 7 {
			t.Errorf("it ended with %v", err)
		}
		fields := strings.Fields(string(out))
		if len(fields) != 2 || !strings.HasPrefix(fields[0], "postgres://") ||
			!strings.HasPrefix(fields[1], "127.0.0.1:") {
			t.Errorf("the command saw %q", out)
		}
	})

	t.Run("PassesASignalAndEndsAfterTheCommand", func(t *testing.T) {
		t.Parallel()
		cmd := self("--", "sh", "-c", `trap 'echo signaled; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		if !lines.Scan() || lines.Text() != "ready" {
			t.Fatalf("it says %q", lines.Text())
		}
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if !lines.Scan() || lines.Text() != "signaled" {
			t.Errorf("it says %q", lines.Text())
		}
		if _ = cmd.Wait(); cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("it ended with %s", cmd.ProcessState)
		}
	})

	t.Run("FailsWithoutACommand", func(t *testing.T) {
		t.Parallel()
		var stderr bytes.Buffer
		cmd := self()
		cmd.Stderr = &stderr
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(stderr.String(), "usage") {
			t.Errorf("%s: %s", cmd.ProcessState, stderr.String())
		}
		cmd = self("--", "/no/such/command")
		cmd.Stderr = &stderr
		if _ = cmd.Run(); cmd.ProcessState.ExitCode() != codeNotStarted ||
			!strings.Contains(stderr.String(), "/no/such/command") {
			t.Errorf("%s: %s", cmd.ProcessState, stderr.String())
		}
	})
}
