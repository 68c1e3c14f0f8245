// Package migrations embeds the database schema as numbered SQL files, which schema.Migrate applies in order. A
// released file never changes: every change of the schema is a new file.
//
// Each file must be safe on a live database: add columns with a default or as nullable, build indexes on large tables
// with CONCURRENTLY in a file of their own (`-- +goose NO TRANSACTION`), and never rewrite messages. There are no down
// migrations, since they would delete stored conversations.
package migrations

import "embed"

// FS has the SQL files. The number at the start of a name is the schema's version after the file.
//
//go:embed *.sql
var FS embed.FS
