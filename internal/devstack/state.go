package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const stateFile = "stack.json"

// state is the record of a persistent stack. A process in it is only a hint until process.running confirms it. Ports
// and folders are kept while a service is down, so that it returns at the same addresses.
type state struct {
	Postgres service `json:"postgres"`
	Temporal service `json:"temporal"`
}

type service struct {
	process
	Address string `json:"address,omitempty"` // host:port
	URL     string `json:"url,omitempty"`     // of the database, or of the web page
	Data    string `json:"data,omitempty"`    // the cluster's folder, or the SQLite file
	Log     string `json:"log,omitempty"`
}

func readState(dir string) (state, error) {
	var st state
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return st, nil
	}
	if err != nil {
		return st, fmt.Errorf("read the state of the local stack: %w", err)
	}
	if err := json.Unmarshal(text, &st); err != nil {
		return st, fmt.Errorf(
			"read the state of the local stack: %s is damaged (%w); remove it: `precis up` finds the running servers",
			filepath.Join(dir, stateFile), err)
	}
	return st, nil
}

// write replaces the whole file: a reader sees the old state or the new one.
func (st state) write(dir string) error {
	text, err := json.MarshalIndent(st, "", "  ")
	if err == nil {
		err = replaceFile(dir, stateFile, text)
	}
	if err != nil {
		return fmt.Errorf("write the state of the local stack: %w", err)
	}
	return nil
}

// replaceFile replaces the content of a file in one step and ends it with a line break. Nobody else can read the
// file: it may contain the password of the database.
func replaceFile(dir, name string, text []byte) error {
	fresh, err := os.CreateTemp(dir, name+".*")
	if err != nil {
		return err
	}
	_, err = fresh.Write(append(text, '\n'))
	err = errors.Join(err, fresh.Chmod(0o600), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return nil
}

// makePrivate takes the permissions of others from a file that an earlier build may have made. It does nothing if there
// is no such file.
func makePrivate(path string) error {
	if err := os.Chmod(path, 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lock waits until no other process holds the file. The kernel releases it when its holder ends in any way. waiting is
// called once if another process holds it.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the local stack: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("wait for another precis that holds %s: %w", path, context.Cause(ctx)),
				file.Close())
		case <-tick.C:
		}
	}
}
