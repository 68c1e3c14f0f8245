// Command worker serves compactions: the workflows and the activities of both task queues, and the outbox. Run as many
// as are needed; SIGTERM and SIGINT drain and end one.
package main

import (
	"fmt"
	"os"

	"precis/internal/worker/process"
)

func main() {
	if err := process.Main(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}
