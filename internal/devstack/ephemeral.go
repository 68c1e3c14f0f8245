package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// keeper runs PostgreSQL as long as its standard input is open, which is a pipe that this process holds. Then it kills
// the server, whose data are no longer needed, and removes the folder. So a process that is killed leaves neither. When
// the server itself fails, the folder stays so that its log can be read.
//
// It is a shell script because every system has a shell. This process is often a test binary and cannot start itself
// as a keeper.
const keeper = `
dir=$1 bin=$2 options=$3
shift 3
exec 3<&0 </dev/null >"$dir/postgres.log" 2>&1
"$bin/initdb" -D "$dir/data" $options"$dir/password" --no-sync 3<&- || exit 1
"$bin/postgres" "$@" 3<&- &
server=$!
{
	cat <&3
	: >"$dir/ended"
	# Repeated, because a server that has only just been started ignores it.
	while kill -0 $$ && kill -QUIT $server; do sleep 0.1; done
} >/dev/null 2>&1 &
wait $server
[ -e "$dir/ended" ] || exit 1
rm -rf "$dir"
`

// closeTimeout is how long an ephemeral server may take to end when its lifeline is closed.
const closeTimeout = 5 * time.Second

func upEphemeral(ctx context.Context, opts Options) (_ *Stack, err error) {
	s := &Stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.closeEphemeral(context.WithoutCancel(ctx)))
		}
	}()
	var st state
	if opts.ownsDatabase() {
		if err := s.startPostgres(ctx, opts, &st.Postgres); err != nil {
			return nil, err
		}
	}
	if opts.ownsTemporal() {
		if err := s.startTemporal(ctx, opts, &st.Temporal); err != nil {
			return nil, err
		}
	}
	up := opts.stack(st)
	up.children, up.scratch = s.children, s.scratch
	return up, nil
}

func (s *Stack) startPostgres(ctx context.Context, opts Options, svc *service) error {
	installed, err := findPostgres(ctx, 0)
	if err != nil {
		return err
	}
	as, err := postgresAccount()
	if err != nil {
		return err
	}
	if s.scratch, err = scratchDir(as); err != nil {
		return err
	}
	port, err := freePort(0)
	if err != nil {
		return err
	}
	return opts.step("starting PostgreSQL "+installed.version, func(func(string)) error {
		keeper, err := startKeeper(s.scratch, installed, as, port)
		if err != nil {
			return err
		}
		s.children = append(s.children, keeper)
		owner, err := ownerOfDatabase(s.scratch)
		if err != nil {
			return err
		}
		if err := prepareDatabase(ctx, port, owner, keeper.process); err != nil {
			return withLog(fmt.Errorf("start PostgreSQL: %w", err), readTail(filepath.Join(s.scratch, "postgres.log")))
		}
		svc.URL = databaseURL(port, owner, databaseName)
		return nil
	})
}

// startKeeper makes a cluster in the folder scratch and runs a server on it.
func startKeeper(scratch string, installed installation, as *account, port int) (*child, error) {
	if err := makePassword(scratch, as); err != nil {
		return nil, err
	}
	args := []string{"-c", keeper, "keeper", scratch, installed.bin, initdbOptions}
	return launch{
		path: "/bin/sh", args: append(args, serverArgs(filepath.Join(scratch, "data"), port, false)...),
		dir: scratch, env: postgresEnv(), as: as, tethered: true,
	}.start()
}

func (s *Stack) startTemporal(ctx context.Context, opts Options, svc *service) error {
	binary, err := buildTemporal(ctx, opts)
	if err != nil {
		return err
	}
	return opts.step("starting Temporal", func(func(string)) error {
		// The log is only read by this process, if the start fails. It needs no name, so nothing is left behind.
		log, err := os.CreateTemp("", "precis-temporal-*.log")
		if err != nil {
			return fmt.Errorf("start Temporal: %w", err)
		}
		defer func() { _ = log.Close() }()
		if err := os.Remove(log.Name()); err != nil {
			return fmt.Errorf("start Temporal: %w", err)
		}
		server, where, err := temporalLaunch{
			binary: binary, namespace: opts.TemporalNamespace, ui: !opts.NoUI, dir: os.TempDir(), log: log,
		}.start(ctx)
		if err != nil {
			return withLog(err, tail(log))
		}
		s.children = append(s.children, server)
		svc.Address, svc.URL = where.GRPC, where.UI
		return EnsureNamespace(ctx, where.GRPC, opts.TemporalNamespace)
	})
}

func (s *Stack) closeEphemeral(ctx context.Context) error {
	var errs []error
	for _, c := range s.children {
		errs = append(errs, c.end(ctx, closeTimeout))
	}
	s.children = nil
	if s.scratch != "" {
		errs = append(errs, os.RemoveAll(s.scratch)) // already removed by the keeper, unless something went wrong
		s.scratch = ""
	}
	return errors.Join(errs...)
}

// scratchDir makes a folder that the account owns and can reach: TMPDIR may be private to the current user.
func scratchDir(as *account) (string, error) {
	var errs []error
	for _, base := range []string{os.TempDir(), "/tmp", "/var/tmp"} {
		dir, err := os.MkdirTemp(base, "precis-")
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if err := as.own(dir); err != nil {
			errs = append(errs, err)
		} else if as.canUse(dir) {
			return dir, nil
		} else {
			errs = append(errs, fmt.Errorf("%s cannot be used by %s", dir, as.name))
		}
		errs = append(errs, os.Remove(dir))
	}
	return "", fmt.Errorf("create a temporary folder for PostgreSQL: %w", errors.Join(errs...))
}
