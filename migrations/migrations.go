// Package migrations holds the database schema as numbered SQL files, embedded, applied in order by
// schema.Migrate and never changed once released: a change of the schema is a new file.
//
// Each file must be safe on a live database: add columns with a default or as nullable, build indexes on
// large tables with CONCURRENTLY in a file of their own (`-- +goose NO TRANSACTION`), and never rewrite
// messages. There are no down migrations: a transcript is not something to roll back over.
package migrations

import "embed"

// FS is the SQL files. The number in front of a name is the schema's version after it.
//
//go:embed *.sql
var FS embed.FS
