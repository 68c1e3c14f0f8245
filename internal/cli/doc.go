// Package cli is the precis command: it reads transcripts, runs the compaction workflow on them, and shows what was
// done. `precis --help` lists the commands; each has a file of its own here.
//
//	root.go     the command tree and what all commands share
//	fail.go     exit codes, and errors as a person reads them
//	connect.go  the way to the database, to Temporal, and to a stack of one's own
//	print.go    tables, sizes and times
package cli
