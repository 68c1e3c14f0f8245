// Package db is the low layer of the store: the pool with its retries and transactions, the query helpers, and the
// types that every room uses: references, hashes, errors.
package db

import (
	"context"
	"crypto/ed25519"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"
)

// Options configure a Store. The zero value suits most processes.
type Options struct {
	// AppName is shown in pg_stat_activity. Defaults to "precis".
	AppName string
	// MaxConns bounds the pool. Defaults to what the URL's pool_max_conns says, else to pgx's own: four, or
	// the number of CPUs if that is more.
	MaxConns int32
	// RetryFor bounds the local retries of one operation; longer outages are left to Temporal or the caller. Defaults
	// to 2 seconds; negative: no retry.
	RetryFor time.Duration
	// SigningKey signs the seals that the store writes, nil: they are not signed. VerifyKey is the key that
	// verification expects of every conversation's last seal, nil: signatures are not verified.
	SigningKey ed25519.PrivateKey
	VerifyKey  ed25519.PublicKey
}

// connectTimeout bounds one attempt to connect, unless the URL sets connect_timeout.
const connectTimeout = 5 * time.Second

// DB is the connection pool, with retries, transactions and compression. It is safe for concurrent use.
type DB struct {
	pool     *pgxpool.Pool
	retryFor time.Duration
	zip      *zstd.Encoder
	unzip    *zstd.Decoder

	signingKey ed25519.PrivateKey
	verifyKey  ed25519.PublicKey
}

// Open connects to the database and returns when it has answered. Close the DB when done.
func Open(ctx context.Context, databaseURL string, o Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, Failed("the database URL cannot be read", err)
	}
	if o.AppName == "" {
		o.AppName = "precis"
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = o.AppName
	}
	// pgx waits two minutes for a host that does not answer, which is too long for a command line.
	if cfg.ConnConfig.ConnectTimeout > connectTimeout && !strings.Contains(databaseURL, "connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	if o.RetryFor == 0 {
		o.RetryFor = 2 * time.Second
	}
	// A plan that was cached while a table was small would read the whole table after it has grown, until the next
	// ANALYZE. Planning each query costs a tenth of a millisecond, and takes into account which optional filters are
	// used.
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SET plan_cache_mode = force_custom_plan`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, Failed("open the pool", err)
	}
	d := &DB{pool: pool, retryFor: o.RetryFor, signingKey: o.SigningKey, verifyKey: o.VerifyKey}
	// The one-shot methods of both are safe for concurrent use, and no goroutines are left running.
	if d.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		pool.Close()
		return nil, Failed("set up compression", err)
	}
	if d.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0)); err != nil {
		pool.Close()
		return nil, Failed("set up decompression", err)
	}
	if err := d.Ping(ctx); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close closes all connections. It waits for running operations.
func (d *DB) Close() {
	d.pool.Close()
	d.unzip.Close()
}

// Ping reports whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	return d.retry(ctx, "reach the database", func(ctx context.Context) error { return d.pool.Ping(ctx) })
}
