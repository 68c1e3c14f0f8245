// Package store keeps everything that precis knows in PostgreSQL: conversations, markers, runs, and the
// record of what was done.
package store
