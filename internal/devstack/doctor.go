package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

const (
	gib = 1 << 30
	// buildBytes is for downloads, the compiler's cache and the binary.
	buildBytes = 4 * gib
	runBytes   = gib / 2
)

// Finding is one thing that a local stack needs of this machine.
type Finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
	// Mend says what to do; empty when OK is true.
	Mend string `json:"mend,omitempty"`
}

// Doctor checks everything that Up needs and changes nothing. It leaves out what a configured address makes
// unnecessary.
func Doctor(ctx context.Context, opts Options) []Finding {
	opts, err := opts.complete()
	if err != nil {
		return []Finding{{Name: "folder", Detail: err.Error(), Mend: "name a folder with --dir"}}
	}
	var findings []Finding
	built := true
	switch {
	case opts.ownsDatabase():
		findings = append(findings, checkPostgres(ctx, opts), checkAccount())
	case !opts.NoDatabase:
		findings = append(findings, checkAnswer("configured database", "PRECIS_DATABASE_URL",
			pingDatabase(ctx, opts.DatabaseURL)))
	}
	switch {
	case opts.ownsTemporal():
		var temporal Finding
		temporal, built = checkTemporal(opts)
		findings = append(findings, temporal)
		if !built {
			findings = append(findings, checkGo(ctx))
		}
	case !opts.NoTemporal:
		findings = append(findings, checkAnswer("configured Temporal", "PRECIS_TEMPORAL__ADDRESS",
			dial(ctx, opts.TemporalAddress)))
	}
	if opts.ownsDatabase() || opts.ownsTemporal() {
		findings = append(findings, checkDisk(opts.Dir, built), checkPorts())
	}
	return findings
}

func checkPostgres(ctx context.Context, opts Options) Finding {
	f := Finding{Name: "PostgreSQL"}
	st, err := readState(opts.Dir)
	if err != nil {
		f.Detail, f.Mend = err.Error(), "remove "+filepath.Join(opts.Dir, stateFile)
		return f
	}
	installed, err := findPostgres(ctx, clusterVersion(st.Postgres.Data))
	if err != nil {
		f.Detail, f.Mend = err.Error(), installPostgres
		return f
	}
	f.OK, f.Detail = true, fmt.Sprintf("%s in %s", installed.version, installed.bin)
	return f
}

func checkAccount() Finding {
	f := Finding{Name: "user for PostgreSQL"}
	as, err := postgresAccount()
	if err != nil {
		f.Detail, f.Mend = err.Error(), "run `adduser --system --group postgres`, or run precis as a normal user"
		return f
	}
	dir, err := scratchDir(as)
	if err != nil {
		f.Detail, f.Mend = err.Error(), "make /tmp or /var/tmp writable for that user"
		return f
	}
	if err := os.Remove(dir); err != nil {
		f.Detail, f.Mend = err.Error(), "remove "+dir
		return f
	}
	f.OK, f.Detail = true, "the current user"
	if as != nil {
		f.Detail = as.name + ", since PostgreSQL refuses to run as root"
	}
	return f
}

// checkTemporal also reports whether the server is built.
func checkTemporal(opts Options) (Finding, bool) {
	f := Finding{Name: "Temporal server"}
	source, err := temporalSource()
	if err == nil {
		var binary string
		if binary, err = temporalBinary(opts.Dir, source); err == nil {
			f.OK, f.Detail = true, "not built yet; the first `precis up` builds it, in 2 to 5 minutes"
			built := exists(binary)
			if built {
				f.Detail = "built: " + binary
			}
			return f, built
		}
	}
	f.Detail, f.Mend = err.Error(), "run precis in its checkout, or set PRECIS_TEMPORAL__ADDRESS"
	return f, false
}

func checkGo(ctx context.Context) Finding {
	f := Finding{
		Name: "Go, to build the Temporal server",
		Mend: "install Go from https://go.dev/dl, at least " + runtime.Version(),
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	out, err := exec.CommandContext(ctx, tool, "version").Output()
	if err != nil {
		f.Detail = fmt.Sprintf("%s version: %v", tool, err)
		return f
	}
	return Finding{Name: f.Name, OK: true, Detail: strings.TrimSpace(string(out)) + " in " + tool}
}

func checkDisk(dir string, built bool) Finding {
	f := Finding{Name: "disk space"}
	need := uint64(runBytes)
	if !built {
		need = buildBytes
	}
	// The folder may not exist yet.
	for !exists(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		f.Detail, f.Mend = fmt.Sprintf("%s: %v", dir, err), "name another folder with --dir"
		return f
	}
	free := disk.Bavail * uint64(disk.Bsize)
	f.OK, f.Detail = free >= need,
		fmt.Sprintf("%.1f GiB free at %s, %.1f needed", float64(free)/gib, dir, float64(need)/gib)
	if !f.OK {
		f.Mend = "free some space, or name a folder on another disk with --dir"
	}
	return f
}

func checkPorts() Finding {
	port, err := freePort(0)
	if err != nil {
		return Finding{
			Name: "loopback ports", Detail: err.Error(),
			Mend: "end the programs that listen on all of them, or allow listening on 127.0.0.1",
		}
	}
	return Finding{Name: "loopback ports", OK: true, Detail: fmt.Sprintf("%d and others are free", port)}
}

func checkAnswer(name, variable string, err error) Finding {
	if err == nil {
		return Finding{Name: name, OK: true, Detail: "answers"}
	}
	return Finding{Name: name, Detail: err.Error(), Mend: "start it, or correct or unset " + variable}
}
