// Package cli is the precis command: it reads transcripts, runs the compaction workflow on them, and shows what the
// runs did. `precis --help` lists the commands; each has a file of its own here.
//
//	root.go     the command tree and what all commands share
//	connect.go  sessions of single commands, with the local stack where none is configured
//	service.go  the service, through which commands act on conversations and runs as the HTTP API does
//	connect     opens the database and Temporal, and alone knows the store
//	fail        exit codes, and errors as a person reads them
//	draw        runs, replays and their evidence as text
//	term        tables, sizes, times and progress
package cli
