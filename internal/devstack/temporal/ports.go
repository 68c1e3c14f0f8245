package main

import (
	"fmt"
	"net"
	"os"
)

const (
	// The range is below the one for outgoing connections on Linux (32768 and up), so that no connection takes a port
	// between the search and the start of the server. Temporal needs ports below 32768 where it keeps them in a
	// database: the column is a SMALLINT.
	firstPort = 10240
	lastPort  = 32767
	// Each process starts the search elsewhere, so that processes which start at the same time do not find the same
	// ports.
	portsPerProcess = 16
)

// portFinder returns free loopback ports, each of them once.
type portFinder struct{ next int }

func newPortFinder() *portFinder {
	places := (lastPort - firstPort + 1) / portsPerProcess
	return &portFinder{next: firstPort + os.Getpid()%places*portsPerProcess}
}

// find returns wanted if it is not 0, else the next free port.
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
