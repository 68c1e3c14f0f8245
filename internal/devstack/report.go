package devstack

import "context"

const (
	postgresName = "PostgreSQL"
	temporalName = "Temporal"
)

// Report describes a stack.
type Report struct {
	Dir      string          `json:"dir"`
	Services []ServiceReport `json:"services"`
}

// ServiceReport describes PostgreSQL or Temporal.
type ServiceReport struct {
	Name string `json:"name"`
	// Configured is true for an address that the caller named, without a process of ours.
	Configured bool `json:"configured"`
	// Running is true while the recorded process runs.
	Running bool `json:"running"`
	// Answers is true if a connection was accepted at the time of the report.
	Answers bool `json:"answers"`
	// Stopped is true if Down ended it.
	Stopped bool   `json:"stopped"`
	PID     int    `json:"pid,omitempty"`
	Address string `json:"address,omitempty"`
	// URL is that of the database, or of Temporal's web page. It is left out for a configured database, because it may
	// contain a password.
	URL   string `json:"url,omitempty"`
	Data  string `json:"data,omitempty"`
	Log   string `json:"log,omitempty"`
	Error string `json:"error,omitempty"`
}

// Status reports every service of a persistent stack and every configured one. It changes nothing.
func Status(ctx context.Context, opts Options) (Report, error) {
	opts, err := opts.complete()
	if err != nil {
		return Report{}, err
	}
	report := Report{Dir: opts.Dir}
	st, err := readState(opts.Dir)
	if err != nil {
		return report, err
	}
	switch {
	case opts.ownsDatabase():
		report.Services = append(report.Services, st.Postgres.report(ctx, postgresName))
	case !opts.NoDatabase:
		report.Services = append(report.Services, configured(postgresName, "", pingDatabase(ctx, opts.DatabaseURL)))
	}
	switch {
	case opts.ownsTemporal():
		report.Services = append(report.Services, st.Temporal.report(ctx, temporalName))
	case !opts.NoTemporal:
		report.Services = append(report.Services,
			configured(temporalName, opts.TemporalAddress, dial(ctx, opts.TemporalAddress)))
	}
	return report, nil
}

// Down ends the processes that the persistent stack recorded and no others, first gently, then by a kill. It does not
// touch configured services or data. Without a running process it does nothing.
func Down(ctx context.Context, opts Options) (Report, error) {
	opts, err := opts.complete()
	if err != nil {
		return Report{}, err
	}
	return downPersistent(ctx, opts)
}

func (s service) report(ctx context.Context, name string) ServiceReport {
	r := ServiceReport{Name: name, Address: s.Address, URL: s.URL, Data: s.Data, Log: s.Log}
	if s.running() {
		r.Running, r.PID = true, s.PID
		if err := dial(ctx, s.Address); err != nil {
			r.Error = err.Error()
		} else {
			r.Answers = true
		}
	}
	return r
}

func configured(name, address string, err error) ServiceReport {
	r := ServiceReport{Name: name, Configured: true, Address: address, Answers: err == nil}
	if err != nil {
		r.Error = err.Error()
	}
	return r
}
