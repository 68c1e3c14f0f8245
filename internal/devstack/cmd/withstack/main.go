// Command withstack runs another command with a real PostgreSQL and a real Temporal, which end when the command does:
//
//	go run ./internal/devstack/cmd/withstack -- go test ./...
//
// The command finds them in PRECIS_TEST_DATABASE_URL and PRECIS_TEST_TEMPORAL_ADDRESS, where package stacktest
// looks for them: all test processes share the two servers. Its exit code is returned; 125 means that the
// servers could not be started.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"precis/internal/devstack"
)

// codeNotStarted is the exit code that docker, env and timeout use for their own failures.
const codeNotStarted = 125

func main() {
	args := os.Args[1:]
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		fmt.Fprintln(os.Stderr, "usage: withstack -- COMMAND [ARGUMENT…]")
		os.Exit(2)
	}
	code, err := run(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "withstack:", err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	// Until the command runs, a signal ends the start. Later ones are sent to the command.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	stack, err := start(signals)
	if err != nil {
		return codeNotStarted, err
	}
	code, err := command(args, stack, signals)
	return code, errors.Join(err, stack.Close(context.Background()))
}

func start(signals <-chan os.Signal) (*devstack.Stack, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	started := make(chan struct{})
	defer close(started)
	go func() {
		select {
		case signal := <-signals:
			cancel(fmt.Errorf("stopped by %s", signal))
		case <-started:
		}
	}()
	return devstack.Up(ctx, devstack.Options{
		Ephemeral: true,
		NoUI:      true,
		Progress:  devstack.Print(os.Stderr, "withstack: "),
	})
}

func command(args []string, stack *devstack.Stack, signals <-chan os.Signal) (int, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(),
		devstack.TestDatabaseVariable+"="+stack.DatabaseURL,
		devstack.TestTemporalVariable+"="+stack.TemporalAddress,
	)
	if err := cmd.Start(); err != nil {
		return codeNotStarted, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		for {
			select {
			case signal := <-signals:
				_ = cmd.Process.Signal(signal)
			case <-ended:
				return
			}
		}
	}()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}
