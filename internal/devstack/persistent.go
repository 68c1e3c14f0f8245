package devstack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// stopTimeout is how long a service may take to stop before it gets the next signal.
const stopTimeout = 15 * time.Second

func upPersistent(ctx context.Context, opts Options) (*Stack, error) {
	if err := makeDir(opts.Dir); err != nil {
		return nil, err
	}
	unlock, err := opts.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	st, err := readState(opts.Dir)
	if err != nil {
		return nil, err
	}
	if opts.ownsDatabase() && !st.Postgres.answers(ctx) {
		if err := opts.startPostgres(ctx, &st); err != nil {
			return nil, err
		}
	}
	if opts.ownsTemporal() {
		if !st.Temporal.answers(ctx) {
			if err := opts.startTemporal(ctx, &st); err != nil {
				return nil, err
			}
		}
		if err := EnsureNamespace(ctx, st.Temporal.Address, opts.TemporalNamespace); err != nil {
			return nil, err
		}
	}
	return opts.stack(st), nil
}

func (o Options) lock(ctx context.Context) (func(), error) {
	return lock(ctx, filepath.Join(o.Dir, "lock"), func() {
		if o.Progress != nil {
			o.Progress(Event{What: "waiting for another precis that starts or stops the local stack"})
		}
	})
}

// answers reports whether the process of a service runs and accepts connections.
func (s service) answers(ctx context.Context) bool {
	return s.running() && dial(ctx, s.Address) == nil
}

// startPostgres starts a server, waits until it answers, and records it in st and in the state file.
func (o Options) startPostgres(ctx context.Context, st *state) error {
	home, as, err := clusterHome(o.Dir)
	if err != nil {
		return err
	}
	data := filepath.Join(home, "data")
	major := clusterVersion(data)
	installed, err := findPostgres(ctx, major)
	if err != nil {
		return err
	}
	if major == 0 {
		err := o.step("making a PostgreSQL "+installed.version+" cluster in "+data, func(func(string)) error {
			return initCluster(ctx, installed, home, as)
		})
		if err != nil {
			return err
		}
	}
	st.Postgres.Data, st.Postgres.Log = data, filepath.Join(home, "postgres.log")
	return o.step("starting PostgreSQL "+installed.version, func(func(string)) error {
		ctx, cancel := context.WithTimeout(ctx, startTimeout)
		defer cancel()
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for {
			err := o.tryPostgres(ctx, st, installed, as)
			text := readTail(st.Postgres.Log)
			// The children of a killed server end a moment later.
			if !errors.Is(err, errEnded) || !strings.Contains(text, "pre-existing shared memory block") {
				if err != nil {
					err = withLog(fmt.Errorf("start PostgreSQL: %w", err), text)
				}
				return err
			}
			select {
			case <-ctx.Done():
				return withLog(fmt.Errorf("start PostgreSQL: %w", err), text)
			case <-tick.C:
			}
		}
	})
}

// tryPostgres starts a server on the cluster once, on its previous port if that is free. It takes over a server whose
// starter was killed before it could record it.
func (o Options) tryPostgres(ctx context.Context, st *state, installed installation, as *account) error {
	svc := &st.Postgres
	found, port, ok := runningPostmaster(svc.Data)
	if !ok {
		var err error
		if port, err = freePort(portOf(svc.Address)); err != nil {
			return err
		}
		log, err := openLog(svc.Log)
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }()
		server, err := launch{
			path: installed.program("postgres"), args: serverArgs(svc.Data, port, true),
			dir: filepath.Dir(svc.Data), env: postgresEnv(), as: as, stdout: log, stderr: log,
		}.start()
		if err != nil {
			return err
		}
		found = server.process
		if err := server.let(); err != nil {
			return err
		}
	}
	owner, err := ownerOfDatabase(filepath.Dir(svc.Data))
	if err != nil {
		return err
	}
	svc.process, svc.Address, svc.URL = found, loopback(port), databaseURL(port, owner, databaseName)
	if err := st.write(o.Dir); err != nil {
		return err
	}
	return prepareDatabase(ctx, port, owner, found)
}

// startTemporal starts a server, waits until it answers, and records it in st and in the state file.
func (o Options) startTemporal(ctx context.Context, st *state) error {
	svc := &st.Temporal
	// A server that runs but does not answer holds the database that the new one needs.
	if err := svc.stop(ctx, stopTimeout, syscall.SIGTERM, syscall.SIGKILL); err != nil {
		return err
	}
	binary, err := buildTemporal(ctx, o)
	if err != nil {
		return err
	}
	return o.step("starting Temporal", func(func(string)) error {
		home := filepath.Join(o.Dir, "temporal")
		if err := makePrivateDir(home); err != nil {
			return fmt.Errorf("create a folder for Temporal: %w", err)
		}
		svc.Data, svc.Log = filepath.Join(home, "temporal.db"), filepath.Join(home, "temporal.log")
		if err := makePrivate(svc.Data); err != nil {
			return fmt.Errorf("protect the database of Temporal: %w", err)
		}
		log, err := openLog(svc.Log)
		if err != nil {
			return err
		}
		defer func() { _ = log.Close() }()
		server, where, err := temporalLaunch{
			binary: binary, dir: home, database: svc.Data, namespace: o.TemporalNamespace,
			grpcPort: ifFree(portOf(svc.Address)), uiPort: ifFree(portOf(strings.TrimPrefix(svc.URL, "http://"))),
			ui: !o.NoUI, log: log,
		}.start(ctx)
		if err != nil {
			return withLog(err, readTail(svc.Log))
		}
		svc.process, svc.Address, svc.URL = server.process, where.GRPC, where.UI
		// Until let, the server ends with this process: nothing keeps running without a record.
		if err := st.write(o.Dir); err != nil {
			return errors.Join(err, server.end(ctx, stopTimeout))
		}
		return server.let()
	})
}

func downPersistent(ctx context.Context, opts Options) (Report, error) {
	report := Report{Dir: opts.Dir}
	if !exists(opts.Dir) {
		return report, nil
	}
	unlock, err := opts.lock(ctx)
	if err != nil {
		return report, err
	}
	defer unlock()
	st, err := readState(opts.Dir)
	if err != nil {
		return report, err
	}
	// Temporal is stopped first. For PostgreSQL the signals mean a fast shutdown, an immediate one, and a kill.
	stop := func(name string, svc *service, signals ...syscall.Signal) error {
		entry := svc.report(ctx, name)
		if entry.Running {
			err := opts.step("stopping "+name,
				func(func(string)) error { return svc.stop(ctx, stopTimeout, signals...) })
			if err != nil {
				entry.Error = err.Error()
				report.Services = append(report.Services, entry)
				return fmt.Errorf("stop %s: %w", name, err)
			}
			entry.Running, entry.Answers, entry.Stopped = false, false, true
		}
		svc.process = process{}
		report.Services = append(report.Services, entry)
		return nil
	}
	err = errors.Join(
		stop(temporalName, &st.Temporal, syscall.SIGTERM, syscall.SIGKILL),
		stop(postgresName, &st.Postgres, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL),
	)
	return report, errors.Join(err, st.write(opts.Dir))
}
