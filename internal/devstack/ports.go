package devstack

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync/atomic"
	"time"
)

// answerTimeout is for services that run and should answer at once.
const answerTimeout = 5 * time.Second

const (
	// The range is below the one for outgoing connections on Linux, so that no connection takes a port between the
	// search and the start of the server.
	firstPort = 10240
	lastPort  = 32767
	// Each process starts the search elsewhere, so that processes which start at the same time do not find the same
	// ports.
	portsPerProcess = 16
)

var nextPort atomic.Uint32

// freePort returns preferred if it is free, else another free port.
func freePort(preferred int) (int, error) {
	if preferred != 0 && isFree(preferred) {
		return preferred, nil
	}
	const count = lastPort - firstPort + 1
	start := os.Getpid() % (count / portsPerProcess) * portsPerProcess
	for range count {
		port := firstPort + (start+int(nextPort.Add(1)-1))%count
		if isFree(port) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d", firstPort, lastPort)
}

// ifFree returns the port if it is free, else 0, which means any port.
func ifFree(port int) int {
	if port == 0 || !isFree(port) {
		return 0
	}
	return port
}

func isFree(port int) bool {
	listener, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }

// portOf returns the port of an address, 0 when it has none.
func portOf(address string) int {
	_, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return port
}

// dial returns nil when a server listens at an address.
func dial(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: answerTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
