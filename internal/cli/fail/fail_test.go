package fail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"syscall"
	"testing"

	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/store"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, ExitDone},
		{errors.New("anything"), ExitFailed},
		{context.Canceled, ExitFailed},
		{fmt.Errorf("load: %w", &config.Error{Key: "dir"}), ExitUsage},
		{fmt.Errorf("compact: %w", Usagef("no")), ExitUsage},
		{fmt.Errorf("attach: %w", devstack.ErrNotRunning), ExitUnreachable},
		{Stack(devstack.ErrNoPostgres), ExitUnreachable},
		{Stack(context.Canceled), ExitFailed},
		{fmt.Errorf("read: %w", store.ErrNotFound), ExitFailed},
		{fmt.Errorf("read: %w", io.ErrUnexpectedEOF), ExitUnreachable}, // the connection was lost
		{errors.Join(Silent(ExitFailed), nil), ExitFailed},
		{Written(syscall.EPIPE), ExitFailed},
		{Written(&fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}), ExitFailed},
		{fmt.Errorf("listen: %w", &net.OpError{Op: "listen", Net: "tcp", Err: syscall.EADDRINUSE}), ExitFailed},
		{
			Stack(fmt.Errorf("make a folder: %w",
				&fs.PathError{Op: "mkdir", Path: "/nowhere", Err: syscall.EACCES})),
			ExitFailed,
		},
	} {
		if got := Code(test.err); got != test.want {
			t.Errorf("%v: exit code %d, want %d", test.err, got, test.want)
		}
	}
}
