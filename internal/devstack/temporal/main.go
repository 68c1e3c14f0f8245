// Command temporal is the Temporal server of a local stack: one process with all services, SQLite and the web UI, tuned
// so that a workflow takes milliseconds where the defaults take a second.
//
// It is a separate module because the server compiles against another version of go.temporal.io/api than the SDK that
// the rest of the project needs. Package devstack builds and runs it; it can also be run by hand:
//
//	go run . --namespace default
//
// When it answers, it writes one line of JSON with its addresses to standard output, and nothing else:
//
//	{"grpc":"127.0.0.1:12345","ui":"http://127.0.0.1:12346"}
//
// Warnings and errors go to standard error. SIGTERM and SIGINT end it cleanly.
//
// With --die-with-stdin it ends as soon as its standard input does. The kernel closes the pipe of a killed parent, so
// nothing is left running. A parent that lets it run on writes the line "stay" first.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// stopTimeout limits a clean stop. After it the process ends anyway: SQLite recovers from that.
const stopTimeout = 8 * time.Second

type options struct {
	database         string
	namespaces       []string
	searchAttributes []string
	grpcPort         int
	uiPort           int
	ui               bool
	dieWithStdin     bool
}

// addresses is the line with the server's addresses. UI is left out when it is disabled.
type addresses struct {
	GRPC string `json:"grpc"`
	UI   string `json:"ui,omitempty"`
}

func main() {
	// The caller may close its end of the pipe once it has read the addresses, and a later write would kill the
	// process. What a library prints therefore goes to standard error.
	ready := os.Stdout
	os.Stdout = os.Stderr

	opts, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(0)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(2)
	}
	if err := run(opts, ready); err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var opts options
	var namespaces, searchAttributes string
	flags := flag.NewFlagSet("temporal", flag.ContinueOnError)
	flags.StringVar(&opts.database, "db", "",
		"SQLite `file` to keep everything in, created if missing; empty: in memory")
	flags.StringVar(&namespaces, "namespace", "default",
		"`names` of the namespaces to create at the start, separated by commas")
	flags.StringVar(&searchAttributes, "search-attributes", "",
		"`names` of keyword attributes of these namespaces, separated by commas")
	flags.IntVar(&opts.grpcPort, "grpc-port", 0, "loopback `port` of the API; 0: a free one")
	flags.IntVar(&opts.uiPort, "ui-port", 0, "loopback `port` of the web UI; 0: a free one")
	flags.BoolVar(&opts.ui, "ui", true, "serve the web UI")
	flags.BoolVar(&opts.dieWithStdin, "die-with-stdin", false,
		"end when standard input ends, unless it had the line \"stay\"")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		return opts, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	opts.namespaces = list(namespaces)
	opts.searchAttributes = list(searchAttributes)
	return opts, nil
}

// list splits at commas and leaves out empty parts.
func list(text string) []string {
	var items []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}

// run serves until a signal, or with dieWithStdin until the end of standard input.
func run(opts options, ready io.Writer) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if opts.dieWithStdin {
		go func() {
			if line, _ := bufio.NewReader(os.Stdin).ReadString('\n'); line != "stay\n" {
				cancel()
			}
		}()
	}

	srv, err := startServer(ctx, opts)
	if err != nil {
		return err
	}
	where := addresses{GRPC: srv.address}
	web := func() {}
	if opts.ui {
		if where.UI, web, err = startUI(ctx, opts, srv); err != nil {
			return errors.Join(err, srv.stop())
		}
	}
	if err := json.NewEncoder(ready).Encode(where); err != nil {
		web()
		return errors.Join(fmt.Errorf("write the addresses for the caller: %w", err), srv.stop())
	}

	<-ctx.Done()
	if opts.database == "" {
		return nil // nothing to save
	}
	stopped := make(chan error, 1)
	go func() {
		web()
		stopped <- srv.stop()
	}()
	select {
	case err := <-stopped:
		return err
	case <-time.After(stopTimeout):
		return fmt.Errorf("the server did not stop within %s", stopTimeout)
	}
}
