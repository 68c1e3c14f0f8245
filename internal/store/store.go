package store

import (
	"context"

	"precis/internal/store/access"
	"precis/internal/store/artifacts"
	"precis/internal/store/breakers"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/evidence"
	"precis/internal/store/exports"
	"precis/internal/store/livestate"
	"precis/internal/store/markers"
	"precis/internal/store/modelcalls"
	"precis/internal/store/outbox"
	"precis/internal/store/replays"
	"precis/internal/store/replies"
	"precis/internal/store/retention"
	"precis/internal/store/runs"
	"precis/internal/store/searchindex"
	"precis/internal/store/segments"
	"precis/internal/store/timeline"
	"precis/internal/store/triggers"
)

// Store is an open database with its rooms, one field each. It is safe for concurrent use.
type Store struct {
	db *db.DB

	// Access.
	Tenants     *access.Tenants
	Keys        *access.Keys
	Idempotency *access.Idempotency

	// Conversations, and the contexts made from them.
	Conversations *conversations.Store
	Messages      *conversations.Messages
	Changes       *changes.Store
	Replies       *replies.Store
	LiveState     *livestate.Store
	Markers       *markers.Store
	Contexts      *contexts.Store
	Timeline      *timeline.Store

	// Compactions: triggers, runs and what they use.
	Triggers   *triggers.Store
	Runs       *runs.Store
	Attempts   *runs.Attempts
	ModelCalls *modelcalls.Store
	Artifacts  *artifacts.Store
	Replays    *replays.Store
	Batches    *replays.Batches
	Outbox     *outbox.Store
	Breakers   *breakers.Store

	// Verification, export and deletion.
	Evidence  *evidence.Store
	Jobs      *evidence.Jobs
	Exports   *exports.Store
	Retention *retention.Store

	// Search and out-of-band memory.
	SearchIndex *searchindex.Store
	Segments    *segments.Store
}

// Open connects to the database and returns when it has answered. The URL has libpq's form; its search_path parameter
// selects the schema. Open does not migrate the schema: see package schema. Close the store when done.
func Open(ctx context.Context, databaseURL string, o Options) (*Store, error) {
	d, err := db.Open(ctx, databaseURL, o)
	if err != nil {
		return nil, err
	}
	return &Store{
		db:      d,
		Tenants: access.NewTenants(d), Keys: access.NewKeys(d), Idempotency: access.NewIdempotency(d),
		Conversations: conversations.New(d), Messages: conversations.NewMessages(d), Changes: changes.New(d),
		Replies: replies.New(d), LiveState: livestate.New(d), Markers: markers.New(d), Contexts: contexts.New(d),
		Timeline: timeline.New(d), Triggers: triggers.New(d), Runs: runs.New(d), Attempts: runs.NewAttempts(d),
		ModelCalls: modelcalls.New(d), Artifacts: artifacts.New(d), Replays: replays.New(d),
		Batches: replays.NewBatches(d), Outbox: outbox.New(d), Breakers: breakers.New(d), Evidence: evidence.New(d),
		Jobs: evidence.NewJobs(d), Exports: exports.New(d), Retention: retention.New(d),
		SearchIndex: searchindex.New(d), Segments: segments.New(d),
	}, nil
}

// Close closes all connections. It waits for running operations.
func (s *Store) Close() { s.db.Close() }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.db.Ping(ctx) }
