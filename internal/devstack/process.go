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

// process names one process for good. A number alone does not: once its process has ended, the system may
// give it to another.
type process struct {
	PID     int    `json:"pid,omitempty"`
	Started string `json:"started,omitempty"` // as startOf says it
}

// identify names the process that has this number now.
func identify(pid int) (process, error) {
	started, err := startOf(pid)
	if err != nil {
		return process{}, fmt.Errorf("look at process %d: %w", pid, err)
	}
	return process{PID: pid, Started: started}, nil
}

// running is false for a process that has ended but was not waited for yet.
func (p process) running() bool {
	if p.PID == 0 {
		return false
	}
	started, err := startOf(p.PID)
	return err == nil && started == p.Started
}

// stop asks with each signal in turn, and waits up to patience for it to work. The last should be SIGKILL.
// A process that does not run any more is no error.
func (p process) stop(ctx context.Context, patience time.Duration, signals ...syscall.Signal) error {
	for _, signal := range signals {
		if !p.running() {
			return nil
		}
		if err := syscall.Kill(p.PID, signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop process %d: %w", p.PID, err)
		}
		if p.waitEnd(ctx, patience) {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("process %d has not stopped yet: %w", p.PID, err)
		}
	}
	return fmt.Errorf("process %d does not stop", p.PID)
}

// waitEnd works for a process that is not our child too.
func (p process) waitEnd(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for p.running() {
		select {
		case <-ctx.Done():
			return false
		case <-again.C:
		}
	}
	return true
}

// child is a process that we started, in a session of its own: a Ctrl-C in our terminal does not reach it.
type child struct {
	process
	cmd *exec.Cmd
	// lifeline is our end of its standard input. The kernel closes it when we end, however that is, and the
	// child ends when it is closed.
	lifeline *os.File
}

// launch describes a child. No goroutine and no open file but the lifeline is kept for it.
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
		c.process, err = process{PID: cmd.Process.Pid}, nil // it has ended already, and does not run
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

// let lets the child live on without us.
func (c *child) let() error {
	if c.lifeline != nil {
		_, err := c.lifeline.WriteString("stay\n")
		if err = errors.Join(err, c.lifeline.Close()); err != nil {
			return fmt.Errorf("let process %d live on: %w", c.PID, err)
		}
	}
	return c.cmd.Process.Release()
}

// end closes the lifeline, waits for the child to end by itself, and kills it and what it started otherwise.
func (c *child) end(ctx context.Context, patience time.Duration) error {
	if c.lifeline != nil {
		_ = c.lifeline.Close()
	}
	var err error
	if c.lifeline == nil || !c.waitEnd(ctx, patience) {
		// It leads a process group, whose number stays its own until we have waited for it.
		if err = syscall.Kill(-c.PID, syscall.SIGKILL); err != nil {
			err = fmt.Errorf("kill process group %d: %w", c.PID, err)
		}
	}
	_ = c.cmd.Wait() // its exit status says nothing: it was told to end
	return err
}
