package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/klauspost/compress/zstd"
)

// DefaultTenant owns everything while no API keys are configured.
const DefaultTenant = "default"

// Options tune a Store. The zero value is what most processes want.
type Options struct {
	// AppName is shown in pg_stat_activity. Defaults to "precis".
	AppName string
	// MaxConns bounds the pool. Defaults to what the URL's pool_max_conns says, else to pgx's own: four, or
	// the number of CPUs if that is more.
	MaxConns int32
	// RetryFor bounds the local retries of one operation; what lasts longer is for Temporal or the caller.
	// Defaults to 2 seconds; negative: no retry.
	RetryFor time.Duration
}

// connectTimeout bounds one attempt at a connection, unless the URL says connect_timeout.
const connectTimeout = 5 * time.Second

// Store reads and writes everything that precis keeps. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	retryFor time.Duration
	zip      *zstd.Encoder
	unzip    *zstd.Decoder
	// states are those that KeepState has kept.
	states recent
}

// A ConversationRef names a conversation. Every method that takes one finds nothing but that tenant's own:
// another tenant's id is ErrNotFound, like one that does not exist.
type ConversationRef struct {
	Tenant string
	ID     string
}

func (r ConversationRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }

// A RunRef names a run of a tenant.
type RunRef struct {
	Tenant string
	ID     string
}

func (r RunRef) String() string { return fmt.Sprintf("%s/%s", r.Tenant, r.ID) }

// Open connects to the database and makes sure that it answers. The URL is a libpq one; its search_path
// parameter picks the schema. The schema is not touched: see Migrate. Close the store when done.
func Open(ctx context.Context, databaseURL string, o Options) (*Store, error) {
	cfg, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("store: the database URL cannot be read: %w", err)
	}
	if o.AppName == "" {
		o.AppName = "precis"
	}
	if cfg.ConnConfig.RuntimeParams["application_name"] == "" {
		cfg.ConnConfig.RuntimeParams["application_name"] = o.AppName
	}
	// pgx would wait two minutes for a host that does not answer; a person at a terminal would not.
	if cfg.ConnConfig.ConnectTimeout > connectTimeout && !strings.Contains(databaseURL, "connect_timeout") {
		cfg.ConnConfig.ConnectTimeout = connectTimeout
	}
	if o.MaxConns > 0 {
		cfg.MaxConns = o.MaxConns
	}
	if o.RetryFor == 0 {
		o.RetryFor = 2 * time.Second
	}
	// A plan that was cached while a table was small would read the whole of it when it has grown, until the next
	// ANALYZE. Planning anew costs a tenth of a millisecond, and sees which of the optional filters are used.
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SET plan_cache_mode = force_custom_plan`)
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("store: open the pool: %w", err)
	}
	s := &Store{pool: pool, retryFor: o.RetryFor}
	// Both are safe for concurrent use by their one-shot methods and hold no goroutines with concurrency 1.
	if s.zip, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: set up compression: %w", err)
	}
	if s.unzip, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0)); err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: set up decompression: %w", err)
	}
	if err := s.Ping(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close gives all connections back. It waits for operations that are under way.
func (s *Store) Close() {
	s.pool.Close()
	s.unzip.Close()
}

// Ping says whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.retry(ctx, "reach the database", func(ctx context.Context) error { return s.pool.Ping(ctx) })
}

// querier is what a pool, a connection and a transaction have in common.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// one runs a query that gives at most one row.
func one[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any) (T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		var zero T
		return zero, err
	}
	v, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return v, ErrNotFound
	}
	return v, err
}

// all runs a query and collects its rows.
func all[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}
