package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// process identifies a process. Its number alone does not: the system can give it to another process later.
type process struct {
	PID     int    `json:"pid,omitempty"`
	Started string `json:"started,omitempty"` // the value of startOf
}

// identify returns the process that has this number now.
func identify(pid int) (process, error) {
	started, err := startOf(pid)
	if err != nil {
		return process{}, fmt.Errorf("identify process %d: %w", pid, err)
	}
	return process{PID: pid, Started: started}, nil
}

// running reports whether the process runs. One that has ended but was not waited for yet does not run.
func (p process) running() bool {
	if p.PID == 0 {
		return false
	}
	started, err := startOf(p.PID)
	return err == nil && started == p.Started
}

// stop sends each signal in turn, the last of which should be SIGKILL, and waits up to timeout after each of them. It
// returns nil for a process that does not run.
func (p process) stop(ctx context.Context, timeout time.Duration, signals ...syscall.Signal) error {
	for _, signal := range signals {
		if !p.running() {
			return nil
		}
		if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", p.PID, err)
		}
		if p.waitEnd(ctx, timeout) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("process %d has not stopped yet: %w", p.PID, err)
		}
	}
	return fmt.Errorf("process %d does not stop", p.PID)
}

// waitEnd reports whether the process ends within timeout. It need not be a child of this one.
func (p process) waitEnd(ctx context.Context, timeout time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.running() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}

// child is a process that this one started, in a session of its own: a Ctrl-C in the terminal does not reach it.
type child struct {
	process
	cmd *exec.Cmd
	// lifeline is our end of the child's standard input. The kernel closes it when this process ends in any way, and
	// the child then ends too.
	lifeline *os.File
}

// launch describes a child. Nothing but the lifeline is kept open for it.
type launch struct {
	path     string
	args     []string
	dir      string
	env      []string
	as       *account // nil: the current user
	stdout   *os.File
	stderr   *os.File
	tethered bool // with a lifeline
}

func (l launch) start() (*child, error) {
	cmd := exec.Command(l.path, l.args...)
	cmd.Dir, cmd.Env = l.dir, l.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: l.as.credential()}
	if l.stdout != nil {
		cmd.Stdout = l.stdout
	}
	if l.stderr != nil {
		cmd.Stderr = l.stderr
	}
	c := &child{cmd: cmd}
	if l.tethered {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", l.path, err)
		}
		defer func() { _ = read.Close() }()
		cmd.Stdin, c.lifeline = read, write
	}
	err := cmd.Start()
	if err != nil {
		err = fmt.Errorf("start %s: %w", l.path, err)
	} else if c.process, err = identify(cmd.Process.Pid); errors.Is(err, syscall.ESRCH) {
		c.process, err = process{PID: cmd.Process.Pid}, nil // it has already ended
	} else if err != nil {
		err = errors.Join(err, cmd.Process.Kill())
		_ = cmd.Wait()
	}
	if err != nil {
		if c.lifeline != nil {
			_ = c.lifeline.Close()
		}
		return nil, err
	}
	return c, nil
}

// let lets the child run on when this process ends.
func (c *child) let() error {
	if c.lifeline != nil {
		_, err := c.lifeline.WriteString("stay\n")
		if err = errors.Join(err, c.lifeline.Close()); err != nil {
			return fmt.Errorf("let process %d run on: %w", c.PID, err)
		}
	}
	return c.cmd.Process.Release()
}

// end closes the lifeline and waits for the child to end. After timeout it kills the child and what it started.
func (c *child) end(ctx context.Context, timeout time.Duration) error {
	if c.lifeline != nil {
		_ = c.lifeline.Close()
	}
	var err error
	if c.lifeline == nil || !c.waitEnd(ctx, timeout) {
		// The child leads a process group, whose number is not reused before Wait.
		if err = syscall.Kill(-c.PID, syscall.SIGKILL); err != nil {
			err = fmt.Errorf("kill process group %d: %w", c.PID, err)
		}
	}
	_ = c.cmd.Wait() // its exit status does not matter, since it was made to end
	return err
}
