package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// A process that uses the stack for one call holds a shared lock of this file; one that takes it down an exclusive
	// lock.
	borrowFile = "borrow.lock"
	// This file exists while the stack runs only for its borrowers.
	borrowedFile = "borrowed"
)

// Borrow returns the persistent stack for one call, and a function that gives it back. A running stack is used as it
// is. Otherwise the error is ErrNotRunning; with start, the stack is brought up instead, and the last of its
// borrowers takes it down, unless Up was called meanwhile.
func Borrow(ctx context.Context, opts Options, start bool) (*Stack, func(context.Context) error, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, nil, err
	}
	if start {
		if err := makeDir(opts.Dir); err != nil {
			return nil, nil, err
		}
	} else if !exists(opts.Dir) {
		stack, err := Attach(ctx, opts)
		return stack, func(context.Context) error { return nil }, err
	}
	held, err := holdShared(ctx, opts.Dir)
	if err != nil {
		return nil, nil, err
	}
	stack, err := borrow(ctx, opts, start)
	giveBack := func(ctx context.Context) error { return opts.giveBack(ctx, held) }
	if err != nil {
		return nil, nil, errors.Join(err, giveBack(context.WithoutCancel(ctx)))
	}
	return stack, giveBack, nil
}

func borrow(ctx context.Context, opts Options, start bool) (*Stack, error) {
	stack, err := Attach(ctx, opts)
	if !errors.Is(err, ErrNotRunning) || !start {
		return stack, err
	}
	// The mark is written before the start: if this process is killed, the next borrower finds it and takes the stack
	// down.
	mark := filepath.Join(opts.Dir, borrowedFile)
	if err := os.WriteFile(mark, nil, 0o600); err != nil {
		return nil, fmt.Errorf("borrow the local stack: %w", err)
	}
	return upPersistent(ctx, opts)
}

func (o Options) giveBack(ctx context.Context, held *os.File) error {
	defer func() { _ = held.Close() }()
	if err := syscall.Flock(int(held.Fd()), syscall.LOCK_UN); err != nil {
		return fmt.Errorf("return the local stack: %w", err)
	}
	err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil // another process still uses it, or takes it down
	}
	if err != nil {
		return fmt.Errorf("return the local stack: %w", err)
	}
	if !exists(filepath.Join(o.Dir, borrowedFile)) {
		return nil
	}
	_, err = downPersistent(ctx, o)
	return errors.Join(err, o.stays())
}

// upToStay brings the stack up to stay: borrowers do not take it down.
func upToStay(ctx context.Context, opts Options) (*Stack, error) {
	if err := makeDir(opts.Dir); err != nil {
		return nil, err
	}
	held, err := holdShared(ctx, opts.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Close() }()
	stack, err := upPersistent(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := opts.stays(); err != nil {
		return nil, err
	}
	return stack, nil
}

// stays removes the mark of a borrowed stack.
func (o Options) stays() error {
	if err := os.Remove(filepath.Join(o.Dir, borrowedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep the local stack: %w", err)
	}
	return nil
}

// holdShared waits while another process takes the stack down.
func holdShared(ctx context.Context, dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, borrowFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("borrow the local stack: %w", err)
	}
	err = retry(ctx, func() error { return syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) })
	if err != nil {
		return nil, errors.Join(fmt.Errorf("borrow the local stack: %w", err), file.Close())
	}
	return file, nil
}
