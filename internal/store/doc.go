// Package store keeps all data of precis in PostgreSQL: conversations, compactions, the runs that made them and their
// cost. Temporal only has ids, numbers and hashes, and its data may be lost.
//
// A Store is a facade: each of its fields is a room, a package of its own below this one.
//
//	s, err := store.Open(ctx, url, store.Options{})
//	c, _, err := s.Conversations.Create(ctx, store.DefaultTenant, conversations.NewConversation{ID: "c1"})
//	res, err := s.Changes.Append(ctx, c.Ref, messages, changes.AppendOptions{})
//	run, attached, err := s.Runs.Request(ctx, c.Ref, runs.Request{Kind: pipeline.TriggerManual})
//	…                                  // the workflow: Contexts.Read, ModelCalls.Begin and Finish, Attempts.PutResult
//	m, err := s.Markers.Apply(ctx, run.Ref, marker, facts)
//	source, err := s.Contexts.Read(ctx, c.Ref, contexts.Options{})
//
// # Rooms
//
// From the lowest to the highest layer. A room imports only rooms above it in this list:
//
//	db              the pool, transactions and retries, query helpers, references, hashes, errors
//	schema          migrations
//	access          tenants, API keys, the answers to keyed requests
//	breakers        counters of failures in a row, of a conversation or a vendor
//	seals           records of rows, column by column, written in the transaction that changed the rows
//	conversations   conversations and their messages: reading, creating, locking, hash chains
//	timeline        events; artifacts: large content, by its SHA-256; livestate: todo lists, plans and the like;
//	                replies: leases on one generation by the agent's model; searchindex: full-text search
//	runs            runs, the attempts at their stages, and the stages' results
//	markers         compactions: apply, prepare, undo, report; modelcalls: the ledger; outbox: workflows to start;
//	                replays: runs that repeat others, and batches of them
//	contexts        the sources of contexts, current or as a snapshot recorded them
//	segments        the out-of-band memory; retention: pruning and deletion of content
//	triggers        whether a compaction is due; evidence: verification
//	changes         the changes that may start a compaction: appended messages, ended replies, other settings
//	exports         export and import of conversations
//
// # Tables
//
//	tenants         own all other rows; api_keys has only hashes of keys
//	conversations   one row each: head, sums, usage, active marker; the row is the lock for all changes
//	messages        the transcript, append-only, byte for byte
//	markers         compactions, each based on the one before; status prepared, applied, undone, discarded
//	runs            executions of CompactionWorkflow, written by the request; outcome NULL while unfinished
//	run_attempts    every attempt at every stage
//	stage_results   the result of a stage, for the next attempt after a crash
//	usage_ledger    every request to a model, booked before it is sent
//	artifacts       large content, compressed; artifact_links has the conversations of an artifact
//	outbox          workflows to start
//	replies         leases on one generation by the agent's model
//	enrichments     live state, versioned; segments: the out-of-band memory
//	events          the timeline
//	breakers        failures in a row
//
// The columns are explained in the migrations.
//
// # Invariants
//
// Messages are numbered from 1 without gaps, in the order of their commits, and never change. A trigger in the database
// refuses every UPDATE, DELETE and TRUNCATE except those of Retention, which replaces or deletes content.
//
// Each message has a chain hash over itself and all messages before it (conversations.Chain). The conversation has the
// chain hash of its last message, and a marker that of the last message it covers. So one hash commits to a whole
// history, and Evidence.CheckChain names the first message that was changed.
//
// Content is returned byte for byte as it was given. It is stored as bytea: text and jsonb refuse U+0000 and lone
// surrogates, and jsonb reorders keys and rewrites numbers. Text and JSON for display and queries are cleaned in one
// place (db/clean.go).
//
// Everything that changes a conversation locks its row first, so that concurrent appends, requests, applies, undos,
// reports, replies and deletions have the effect of one after the other. The order of locks is conversation, then
// artifacts.
//
// A conversation has one active marker (a column), one unfinished run besides replays, one prepared marker and one open
// reply (unique partial indexes). A marker is applied in one transaction with its run's end and its event.
//
// Every write may be repeated. If a caller does not know whether the first one succeeded, a key makes the repetition
// safe: for an append the client's ids or IfSeq, for a stage's result (run, stage, call), for a model call (run, call,
// attempt), for a marker its run, for an undo the marker to undo. Concurrent inserts return the first one's row to
// every caller, by ON CONFLICT DO UPDATE … RETURNING, since DO NOTHING returns no row.
//
// Another tenant's ids are ErrNotFound in every method.
//
// All times are the database's, and leases expire by its clock.
//
// # Cost
//
// An append takes four round trips, however long the history. Contexts.Read reads the messages in the context and a few
// rows. With the running sums on each message, the size of any part is known in constant time.
//
// # Errors
//
// Errors that callers distinguish are sentinels for errors.Is, named here and in db. A *ConflictError has the condition
// that failed; the text of an ErrInvalid says what is wrong with the request. Unavailable reports whether the database
// was unavailable, so that the same call may succeed later. Failures shorter than Options.RetryFor are retried in one
// place (db/retry.go), if the operation is known to have had no effect. The caller must repeat a commit whose answer
// was lost.
package store
