package devstack

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// childVariable makes the test binary a process that brings up a stack, says where it is, and waits to be
// killed. Its value is the folder, or "" for an ephemeral stack.
const childVariable = "DEVSTACK_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(childVariable); ok {
		if err := beChild(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// living describes the stack of a child.
type living struct {
	Stack     *Stack
	Processes []process
	Scratch   string
}

func beChild(dir string) error {
	stack, err := Up(context.Background(), Options{Dir: dir, Ephemeral: dir == ""})
	if err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(living{stack, processesOf(stack), stack.scratch}); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// processesOf returns the servers of an ephemeral stack and the processes that keep them.
func processesOf(stack *Stack) []process {
	var all []process
	for _, c := range stack.children {
		all = append(all, c.process)
	}
	if stack.scratch != "" {
		text, err := os.ReadFile(filepath.Join(stack.scratch, "data", "postmaster.pid"))
		if err != nil {
			panic(err)
		}
		pid, err := strconv.Atoi(strings.SplitN(string(text), "\n", 2)[0])
		if err != nil {
			panic(err)
		}
		postmaster, err := identify(pid)
		if err != nil {
			panic(err)
		}
		all = append(all, postmaster)
	}
	return all
}

// startChild starts a child and returns when its stack is up.
func startChild(t *testing.T, dir string) (*exec.Cmd, living) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+dir)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // keeps it waiting
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var up living
	if err := json.NewDecoder(stdout).Decode(&up); err != nil {
		t.Fatalf("the child's stack is not up: %v", err)
	}
	return cmd, up
}

// builtBin returns the folder with the Temporal server of this checkout. The first test that needs it builds it.
var builtBin = sync.OnceValues(func() (string, error) {
	opts, err := Options{Progress: Print(os.Stderr, "")}.complete()
	if err != nil {
		return "", err
	}
	binary, err := buildTemporal(context.Background(), opts)
	return filepath.Dir(binary), err
})

// emptyDir is a folder for a stack with nothing in it but the built server. Every user can reach it, unlike
// t.TempDir. Its processes end with the test.
func emptyDir(t *testing.T) string {
	t.Helper()
	bin, err := builtBin()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "precis-stack-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := Down(context.Background(), Options{Dir: dir}); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin, filepath.Join(dir, "bin")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func mustUp(t *testing.T, opts Options) *Stack {
	t.Helper()
	stack, err := Up(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	return stack
}

func mustEnd(t *testing.T, processes ...process) {
	t.Helper()
	for _, p := range processes {
		if p.PID == 0 {
			t.Error("no process was recorded")
		}
		if !p.waitEnd(t.Context(), 20*time.Second) {
			t.Errorf("process %d still runs: %s", p.PID, commandLine(p.PID))
		}
	}
}
