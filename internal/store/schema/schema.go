// Package schema migrates a database to the version that this build needs.
package schema

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"precis/internal/store/db"
	"precis/migrations"
)

// Version is the schema version of a database.
type Version struct {
	// Current is the version of the database, 0: empty. Latest is the version that this build needs.
	Current, Latest int64
}

// UpToDate reports whether this build can work with the database.
func (v Version) UpToDate() bool { return v.Current == v.Latest }

// Migrate migrates the schema in the URL's search_path to the latest version. Concurrent calls wait for each other.
// log, if not nil, is called with a line for each applied file.
func Migrate(ctx context.Context, databaseURL string, log func(string)) error {
	return withGoose(ctx, databaseURL, func(p *goose.Provider) error {
		results, err := p.Up(ctx)
		if err != nil {
			return db.Failed("migrate", err)
		}
		for _, r := range results {
			if log != nil {
				log(fmt.Sprintf("migrated: %s (%s)", r.Source.Path, r.Duration.Round(time.Millisecond)))
			}
		}
		return nil
	})
}

// Read returns the version of the database and the one that this build needs. An empty database has version 0.
func Read(ctx context.Context, databaseURL string) (Version, error) {
	var v Version
	err := withGoose(ctx, databaseURL, func(p *goose.Provider) error {
		var err error
		if v.Current, v.Latest, err = p.GetVersions(ctx); err != nil {
			return db.Failed("read the schema's version", err)
		}
		return nil
	})
	return v, err
}

func withGoose(ctx context.Context, databaseURL string, fn func(*goose.Provider) error) error {
	cfg, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return db.Failed("the database URL cannot be read", err)
	}
	conn := stdlib.OpenDB(*cfg)
	defer func() { _ = conn.Close() }()
	id, err := lockID(ctx, conn)
	if err != nil {
		return err
	}
	// Wait for another process's migration: try every second, for five minutes.
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockID(id), lock.WithLockTimeout(1, 300))
	if err != nil {
		return db.Failed("migrate", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, conn, migrations.FS, goose.WithSessionLocker(locker))
	if err != nil {
		return db.Failed("migrate", err)
	}
	return fn(p)
}

// lockID returns a lock of the schema's own, so that migrations of different schemas do not wait for each other.
func lockID(ctx context.Context, conn *sql.DB) (int64, error) {
	var schema sql.NullString
	if err := conn.QueryRowContext(ctx, "SELECT current_schema()").Scan(&schema); err != nil {
		return 0, db.Failed("reach the database", err)
	}
	if !schema.Valid {
		return 0, db.Failed("migrate",
			errors.New("the URL's search_path names no schema that exists: create it first"))
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte("precis migrations " + schema.String))
	return int64(h.Sum64() >> 1), nil
}
