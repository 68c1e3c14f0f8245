package devstack

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// temporalLaunch describes one start of the server in the folder temporal.
type temporalLaunch struct {
	binary    string
	dir       string
	database  string // SQLite file; empty: in memory
	namespace string
	grpcPort  int // 0: a free one
	uiPort    int // 0: a free one
	ui        bool
	log       *os.File
}

// temporalAddresses is the line that the server prints when it answers.
type temporalAddresses struct {
	GRPC string `json:"grpc"`
	UI   string `json:"ui"`
}

// start returns when the server answers. The server ends with this process unless child.let is called.
func (l temporalLaunch) start(ctx context.Context) (*child, temporalAddresses, error) {
	var where temporalAddresses
	lines, stdout, err := os.Pipe()
	if err != nil {
		return nil, where, fmt.Errorf("start Temporal: %w", err)
	}
	defer func() { _ = lines.Close() }()
	server, err := launch{
		path: l.binary,
		args: []string{
			"--die-with-stdin",
			"--db", l.database,
			"--namespace", l.namespace,
			"--search-attributes", strings.Join(searchAttributes, ","),
			"--grpc-port", strconv.Itoa(l.grpcPort),
			"--ui-port", strconv.Itoa(l.uiPort),
			"--ui=" + strconv.FormatBool(l.ui),
		},
		dir: l.dir, stdout: stdout, stderr: l.log, tethered: true,
	}.start()
	_ = stdout.Close()
	if err != nil {
		return nil, where, err
	}

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = lines.SetReadDeadline(time.Unix(1, 0)) })()
	line, err := bufio.NewReader(lines).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &where)
	}
	if err != nil {
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
		case !server.running():
			err = errEnded
		}
		return nil, where, errors.Join(fmt.Errorf("start Temporal: %w", err), server.end(context.WithoutCancel(ctx), 0))
	}
	return server, where, nil
}
