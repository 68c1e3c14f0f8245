// Package devstack brings up what precis needs on one machine: a private PostgreSQL and a private Temporal.
//
// A stack is persistent or ephemeral. A persistent one is kept in a folder, .precis, and keeps running when the
// command that started it has ended. Every later command finds it there:
//
//	stack, err := devstack.Up(ctx, devstack.Options{})
//	…
//	report, err := devstack.Down(ctx, devstack.Options{})
//
// An ephemeral one belongs to the process that made it and leaves nothing behind, not even when that process
// is killed:
//
//	stack, err := devstack.Up(ctx, devstack.Options{Ephemeral: true})
//	defer stack.Close(ctx)
//
// PostgreSQL is the one that is installed on the machine. For root it is run as the user postgres, since it
// refuses to run as root. Temporal is a small server of our own, built once from the nested module in the folder
// temporal. An address that the caller names is used in place of either.
//
// Everything listens on loopback only. Temporal has no password: any user of the machine can reach it.
package devstack

import (
	"context"
	"errors"
	"fmt"

	"precis"
)

// searchAttributes are the names of the keyword attributes that the runs of precis need in a namespace.
var searchAttributes = func() []string {
	var names []string
	for _, key := range precis.SearchAttributes() {
		names = append(names, key.GetName())
	}
	return names
}()

var (
	// ErrNotRunning is returned by Attach when no stack runs, or none that answers.
	ErrNotRunning = errors.New("the local stack is not running")
	// ErrNoPostgres is returned when this machine has no usable PostgreSQL.
	ErrNoPostgres = errors.New("no usable PostgreSQL on this machine")
	// ErrNoTemporal is returned when the Temporal server is not built and cannot be built here.
	ErrNoTemporal = errors.New("the local Temporal server cannot be built")
)

// The variables with the servers that tests use in place of new ones. The command withstack sets them, and package
// stacktest reads them.
const (
	TestDatabaseVariable = "PRECIS_TEST_DATABASE_URL"
	TestTemporalVariable = "PRECIS_TEST_TEMPORAL_ADDRESS"
)

// Options choose a stack. The zero value is the persistent stack of this checkout.
type Options struct {
	// DatabaseURL is a PostgreSQL to use in place of a private one. It is not changed.
	DatabaseURL string

	// Dir is the folder of a persistent stack, and of the built Temporal server for both kinds. Defaults to .precis in
	// the checkout around the working directory or the executable, and outside of any checkout to .precis in the home
	// folder.
	Dir string

	// Ephemeral makes a new stack that ends with this process.
	Ephemeral bool

	// NoDatabase leaves PostgreSQL out and NoTemporal leaves Temporal out, for callers that need only one of them.
	NoDatabase, NoTemporal bool

	// NoUI leaves out Temporal's web page.
	NoUI bool

	// Progress receives the steps of a call that takes a while. Calls do not overlap. May be nil.
	Progress func(Event)

	// TemporalAddress is the host:port of a Temporal frontend to use in place of a private one. It is not changed: the
	// namespace and its search attributes must exist, see EnsureNamespace.
	TemporalAddress string

	// TemporalNamespace defaults to "default". In a private Temporal it is created if it is missing.
	TemporalNamespace string
}

// Stack is a stack that answered when it was returned.
type Stack struct {
	// DatabaseURL is empty with NoDatabase; TemporalAddress and Namespace are empty with NoTemporal.
	DatabaseURL     string `json:"database_url,omitempty"`
	TemporalAddress string `json:"temporal_address,omitempty"`
	Namespace       string `json:"namespace,omitempty"`

	// UIURL is Temporal's web page. Empty without one, and for a Temporal that the caller named.
	UIURL string `json:"ui_url,omitempty"`

	children []*child // of an ephemeral stack
	scratch  string   // its folder
}

// Up returns the stack, and starts what does not run yet. The remains of a stack that was killed or crashed are
// recognized and repaired. Two concurrent calls make one stack: the second waits and attaches. If ctx ends first, a
// persistent stack may be up in part; the next Up completes it, and Down ends it.
func Up(ctx context.Context, opts Options) (*Stack, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if err := opts.checkConfigured(ctx); err != nil {
		return nil, err
	}
	if opts.Ephemeral {
		return upEphemeral(ctx, opts)
	}
	return upToStay(ctx, opts)
}

// Attach returns the persistent stack if all of it runs and answers, else ErrNotRunning. It starts nothing.
func Attach(ctx context.Context, opts Options) (*Stack, error) {
	opts, err := opts.complete()
	if err != nil {
		return nil, err
	}
	if err := opts.checkConfigured(ctx); err != nil {
		return nil, err
	}
	st, err := readState(opts.Dir)
	if err != nil {
		return nil, err
	}
	if opts.ownsDatabase() && !st.Postgres.answers(ctx) {
		return nil, fmt.Errorf("%w: PostgreSQL in %s does not answer; start it with `precis up`", ErrNotRunning,
			opts.Dir)
	}
	if opts.ownsTemporal() {
		if !st.Temporal.answers(ctx) {
			return nil, fmt.Errorf("%w: Temporal in %s does not answer; start it with `precis up`", ErrNotRunning,
				opts.Dir)
		}
		if err := EnsureNamespace(ctx, st.Temporal.Address, opts.TemporalNamespace); err != nil {
			return nil, err
		}
	}
	return opts.stack(st), nil
}

// Close ends an ephemeral stack and removes everything it wrote. A persistent one keeps running. A second call does
// nothing.
func (s *Stack) Close(ctx context.Context) error {
	return s.closeEphemeral(ctx)
}

// complete fills in the defaults.
func (o Options) complete() (Options, error) {
	if o.TemporalNamespace == "" {
		o.TemporalNamespace = "default"
	}
	dir, err := stackDir(o.Dir)
	if err != nil {
		return o, err
	}
	o.Dir = dir
	return o, nil
}

func (o Options) ownsDatabase() bool { return !o.NoDatabase && o.DatabaseURL == "" }
func (o Options) ownsTemporal() bool { return !o.NoTemporal && o.TemporalAddress == "" }

// checkConfigured fails early, naming the address, when one that the caller named does not answer.
func (o Options) checkConfigured(ctx context.Context) error {
	if !o.NoDatabase && o.DatabaseURL != "" {
		if err := pingDatabase(ctx, o.DatabaseURL); err != nil {
			return fmt.Errorf("the configured database (PRECIS_DATABASE_URL) does not answer: %w", err)
		}
	}
	if !o.NoTemporal && o.TemporalAddress != "" {
		if err := dial(ctx, o.TemporalAddress); err != nil {
			return fmt.Errorf("the configured Temporal (PRECIS_TEMPORAL__ADDRESS) does not answer: %w", err)
		}
	}
	return nil
}

// stack returns the addresses for the caller: the configured ones, and those in st for the rest.
func (o Options) stack(st state) *Stack {
	s := &Stack{}
	switch {
	case o.ownsDatabase():
		s.DatabaseURL = st.Postgres.URL
	case !o.NoDatabase:
		s.DatabaseURL = o.DatabaseURL
	}
	switch {
	case o.ownsTemporal():
		s.TemporalAddress, s.Namespace, s.UIURL = st.Temporal.Address, o.TemporalNamespace, st.Temporal.URL
	case !o.NoTemporal:
		s.TemporalAddress, s.Namespace = o.TemporalAddress, o.TemporalNamespace
	}
	return s
}
