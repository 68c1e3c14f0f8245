// Command precis compacts the conversations of agents. `precis --help` lists what it does; internal/cli holds it.
package main

import (
	"os"

	"precis/internal/cli"
)

func main() { os.Exit(cli.Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
