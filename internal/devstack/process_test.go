package devstack

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestProcess(t *testing.T) {
	t.Parallel()

	t.Run("IsNotAnotherOfTheSameNumber", func(t *testing.T) {
		t.Parallel()
		me, err := identify(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		if !me.running() {
			t.Error("this process does not run")
		}
		me.Started = "some other time"
		if me.running() {
			t.Error("one that was started at another time runs")
		}
		if (process{}).running() {
			t.Error("none runs")
		}
		if line := commandLine(os.Getpid()); !strings.Contains(line, os.Args[0]) {
			t.Errorf("its command line is %q", line)
		}
	})

	t.Run("HasEndedBeforeItIsWaitedFor", func(t *testing.T) {
		t.Parallel()
		cmd := exec.Command("true")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p := process{PID: cmd.Process.Pid}
		if started, err := startOf(p.PID); err == nil {
			p.Started = started
		}
		if !p.waitEnd(t.Context(), 10*time.Second) {
			t.Error("it runs")
		}
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})

	t.Run("StopsGentlyThenHard", func(t *testing.T) {
		t.Parallel()
		stubborn := exec.Command("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done")
		stdout, err := stubborn.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := stubborn.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := bufio.NewReader(stdout).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		p, err := identify(stubborn.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.stop(t.Context(), 50*time.Millisecond, syscall.SIGTERM); err == nil {
			t.Error("it stopped at the first signal")
		}
		if err := p.stop(t.Context(), 200*time.Millisecond, syscall.SIGTERM, syscall.SIGKILL); err == nil {
			_ = stubborn.Wait()
		} else {
			t.Error(err)
		}
		if err := p.stop(t.Context(), time.Second, syscall.SIGKILL); err != nil {
			t.Errorf("once it has ended: %v", err)
		}
	})
}

func TestFreePort(t *testing.T) {
	t.Parallel()
	first, err := freePort(0)
	if err != nil {
		t.Fatal(err)
	}
	second, err := freePort(0)
	if err != nil {
		t.Fatal(err)
	}
	if first == second || first < firstPort || first > lastPort {
		t.Errorf("found %d and %d", first, second)
	}
	if port, err := freePort(first); err != nil || port != first {
		t.Errorf("the preferred %d: %d, %v", first, port, err)
	}
	if got := portOf("127.0.0.1:80"); got != 80 {
		t.Errorf("port is %d", got)
	}
	if got := portOf(""); got != 0 {
		t.Errorf("no port is %d", got)
	}
}
