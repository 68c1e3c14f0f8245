package cli

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"precis/internal/cli/fail"
	"precis/internal/config"
	"precis/internal/devstack"
	"precis/internal/version"
)

// setup tells one worker of the local stack from another. It holds hashes alone, for it is written down. The
// settings of compactions are not in it: they travel with each run.
type setup struct {
	// Where it works: addresses and queues.
	Where string `json:"where"`
	// Program is the build, Tuning what of the configuration is about the worker itself.
	Program string `json:"program"`
	Tuning  string `json:"tuning"`
	// Vendors are those that it can ask.
	Vendors map[string]string `json:"vendors"`
}

// setupOf describes the worker that this program and configuration would make.
func setupOf(c config.Config) (setup, error) {
	s := setup{
		Where: hash(c.DatabaseURL, c.Temporal.Address, c.Temporal.Namespace, c.Worker.TaskQueue,
			c.Worker.LLMTaskQueue),
		Program: hash(version.Code(), executableStamp()),
		Tuning:  hash(fmt.Sprint(c.Worker), fmt.Sprint(c.HTTP), fmt.Sprint(c.Log)),
		Vendors: map[string]string{},
	}
	for name, v := range c.Vendors {
		if !canBeAsked(c, name) {
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return s, fmt.Errorf("encode the configuration of vendor %s: %w", name, err)
		}
		s.Vendors[name] = hash(string(text))
	}
	return s, nil
}

func (s setup) String() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // strings
	}
	return string(text)
}

// parseSetup gives the zero setup, which is no one's, for what it cannot read.
func parseSetup(text string) setup {
	var s setup
	_ = json.Unmarshal([]byte(text), &s)
	return s
}

// lacks names a vendor of the other setup that this one cannot ask, or not in the same way; "" for none.
func (s setup) lacks(other setup) string {
	for _, name := range slices.Sorted(maps.Keys(other.Vendors)) {
		if s.Vendors[name] != other.Vendors[name] {
			return name
		}
	}
	return ""
}

// fits says whether a worker that runs will do in the place of one of this setup. One that can ask more vendors
// does: a shell that has no keys does not take them from it.
func (s setup) fits(running string) bool {
	theirs := parseSetup(running)
	return theirs.Where == s.Where && theirs.Program == s.Program && theirs.Tuning == s.Tuning && theirs.lacks(s) == ""
}

// startWorker leaves a worker running in the background, from this program and with the command's flags.
func startWorker(ctx context.Context, cmd *cobra.Command, opts devstack.Options,
	mine setup,
) (devstack.WorkerReport, error) {
	program, err := os.Executable()
	if err != nil {
		return devstack.WorkerReport{}, fmt.Errorf("start the worker: %w", err)
	}
	w, err := devstack.StartWorker(ctx, opts, devstack.WorkerLaunch{
		Path: program, Args: append([]string{"worker", "--tethered"}, configArgs(cmd)...), Setup: mine.String(),
		Fits: mine.fits,
	})
	return w, fail.Stack(err)
}

func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:12])
}

// executableStamp changes when the program is built anew.
func executableStamp() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d %d", path, info.Size(), info.ModTime().UnixNano())
}
