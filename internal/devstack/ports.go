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

// answerTimeout is for what runs and must answer at once.
const answerTimeout = 5 * time.Second

const (
	// Below the range from which Linux takes ports for outgoing connections, so that none of these sits on a
	// port between our finding it and the server's listening on it.
	firstPort = 10240
	lastPort  = 32767
	// A process starts looking at a place of its own, so that several which start at the same time do not find
	// the same free ports.
	portsPerProcess = 16
)

var nextPort atomic.Uint32

// freePort returns preferred if nobody listens on it, and else another port of which that is true.
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

// ifFree is 0, which asks for any port, when somebody listens on this one.
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

// portOf is 0 for an address without one.
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

// dial tells whether anybody listens at an address.
func dial(ctx context.Context, address string) error {
	dialer := net.Dialer{Timeout: answerTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
