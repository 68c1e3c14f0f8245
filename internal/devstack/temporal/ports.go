package main

import (
	"fmt"
	"net"
	"os"
)

const (
	// Below the range from which Linux takes ports for outgoing connections (32768 and up), so that no
	// connection of somebody else can sit on a port between our finding it and our listening on it. Temporal
	// itself needs its ports below 32768 where it keeps them in a database: the column is a SMALLINT.
	firstPort = 10240
	lastPort  = 32767
	// A process starts looking at a place of its own, so that several which start at the same time do not
	// find the same free ports.
	portsPerProcess = 16
)

// portFinder hands out free loopback ports, each of them once.
type portFinder struct{ next int }

func newPortFinder() *portFinder {
	places := (lastPort - firstPort + 1) / portsPerProcess
	return &portFinder{next: firstPort + os.Getpid()%places*portsPerProcess}
}

// find returns wanted if it is not 0, and else the next port that nobody listens on.
func (f *portFinder) find(wanted int) (int, error) {
	if wanted != 0 {
		return wanted, nil
	}
	for range lastPort - firstPort {
		port := f.next
		if f.next++; f.next > lastPort {
			f.next = firstPort
		}
		listener, err := net.Listen("tcp", loopback(port))
		if err != nil {
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("no free port on 127.0.0.1 between %d and %d", firstPort, lastPort)
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
