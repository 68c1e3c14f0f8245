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

// setup identifies the configuration of a worker of the local stack. It contains only hashes, because it is written to
// the folder of the stack, and is compared before a store is open. The settings of compactions are not part of it: each
// run carries its own.
type setup struct {
	// Where is the hash of the addresses and queues.
	Where string `json:"where"`
	// Program is the build; Tuning is the part of the configuration that concerns the worker itself.
	Program string `json:"program"`
	Tuning  string `json:"tuning"`
	// Vendors has the vendors that the worker can call.
	Vendors map[string]string `json:"vendors"`
}

// setupOf returns the setup of a worker of this program with this configuration.
func setupOf(c config.Config) (setup, error) {
	s := setup{
		Where: hash(c.DatabaseURL, c.Temporal.Address, c.Temporal.Namespace, c.Worker.TaskQueue,
			c.Worker.LLMTaskQueue),
		Program: hash(version.Code(), executableStamp()),
		Tuning:  hash(fmt.Sprint(c.Worker), fmt.Sprint(c.HTTP), fmt.Sprint(c.Log)),
		Vendors: map[string]string{},
	}
	for name, v := range c.Vendors {
		if !canBeCalled(c, name) {
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
		panic(err) // impossible: the struct holds only strings
	}
	return string(text)
}

// parseSetup reads a setup. It returns the zero setup, which fits no worker, for text that it cannot read.
func parseSetup(text string) setup {
	var s setup
	_ = json.Unmarshal([]byte(text), &s)
	return s
}

// lacks returns the name of a vendor of the other setup that this one does not have, or has with another configuration;
// "" if there is none.
func (s setup) lacks(other setup) string {
	for _, name := range slices.Sorted(maps.Keys(other.Vendors)) {
		if s.Vendors[name] != other.Vendors[name] {
			return name
		}
	}
	return ""
}

// fits reports whether a running worker can be used in place of one with this setup. One with more vendors can: a
// command from a shell without keys does not replace a worker that has them.
func (s setup) fits(running string) bool {
	theirs := parseSetup(running)
	return theirs.Where == s.Where && theirs.Program == s.Program && theirs.Tuning == s.Tuning && theirs.lacks(s) == ""
}

// startWorker starts a background worker of this program, with the flags of the command.
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

// executableStamp returns a text that changes when the program is rebuilt.
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
