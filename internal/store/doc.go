// Package store keeps everything that precis knows in PostgreSQL: what was said, what was compacted, what was done
// for it and what it cost. Temporal holds ids, numbers and hashes only, and may be lost.
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
// From the bottom to the top; a room imports only rooms above it in this list:
//
//	db              the pool, transactions and retries, query helpers, references, hashes, errors
//	schema          migrations
//	access          tenants, API keys, the answers to keyed requests
//	breakers        failures in a row, of a conversation or a vendor
//	seals           what rows were, column by column, written in the transaction that made them so
//	conversations   conversations and their messages: reading, creating, locking, hash chains
//	timeline        events; artifacts: everything large, by its SHA-256; livestate: todo lists, plans and the like;
//	                replies: leases on one generation by the agent's model; searchindex: full-text search
//	runs            runs, the attempts at their stages, and what the stages found
//	markers         compactions: apply, prepare, undo, report; modelcalls: the ledger; outbox: workflows to start;
//	                replays: runs that repeat others, and batches of them
//	contexts        what a context is made from, now or as a snapshot recorded it
//	segments        the out-of-band memory; retention: pruning and deletion of content
//	triggers        whether a compaction is due; evidence: verification
//	changes         what may start a compaction: appended messages, ended replies, other settings
//	exports         a conversation as a file, and back
//
// # Tables
//
//	tenants         own everything below; api_keys holds hashes of keys only
//	conversations   one row each: its head, sums, usage, active marker; the lock for all that happens to it
//	messages        the transcript, append-only, as it arrived
//	markers         compactions, each on the one before it; status prepared, applied, undone, discarded
//	runs            executions of the CompactionWorkflow, written by whoever requests them; outcome NULL while unfinished
//	run_attempts    every attempt at every stage
//	stage_results   what a stage found, for the next attempt after a crash
//	usage_ledger    every request to a model, booked before it is sent
//	artifacts       everything large, compressed; artifact_links says to which conversations an artifact belongs
//	outbox          workflows that are to be started
//	replies         leases on one generation by the agent's model
//	enrichments     live state, versioned; segments: the out-of-band memory
//	events          the timeline
//	breakers        failures in a row
//
// The columns are explained in the migrations.
//
// # Invariants
//
// Messages are numbered from 1 without gaps, in the order of their commits, and never change. A trigger in the
// database refuses every UPDATE, DELETE and TRUNCATE, except by Retention, which replaces or deletes content.
//
// Each message carries a chain hash over itself and all before it (conversations.Chain), the conversation that of its
// last message, and a marker that of the last message it covers. So one hash commits to a whole history, and
// Evidence.CheckChain names the first message that was changed.
//
// What came is given back byte for byte. It is kept as bytea: text and jsonb refuse U+0000 and lone surrogates, and
// jsonb reorders keys and rounds numbers. Text for people and numbers for queries are cleaned in one place
// (db/clean.go).
//
// Everything that changes a conversation locks its row first. Any two of append, request, apply, undo, report, open a
// reply and delete have the effect of one after the other. The order of locks is conversation, then artifacts.
//
// A conversation has one active marker (a column), one unfinished run beside replays, one prepared marker and one
// open reply (unique partial indexes). A marker takes effect together with its run's end and its event, or not at
// all.
//
// Every write may be repeated. Where a caller cannot see whether the first one succeeded, a key tells: for an append
// the client's ids or IfSeq, for a stage's result (run, stage, call), for a model call (run, call, attempt), for a
// marker its run, for an undo the marker it means. Inserts that race give every caller the first one's row: ON
// CONFLICT DO UPDATE … RETURNING, since DO NOTHING returns none.
//
// Another tenant's ids are ErrNotFound in every method.
//
// Times are the database's; leases are judged by its clock alone.
//
// # Cost
//
// An append takes four round trips, however long the history. Contexts.Read reads the messages that are live and a
// few rows. Running sums on each message give the size of any part in constant time.
//
// # Errors
//
// What a caller tells apart is a sentinel for errors.Is, named here and in db; a *ConflictError says which condition
// failed; the text of an ErrInvalid says what is wrong with the request. Unavailable reports that the database is
// away and the same call may succeed later. Failures shorter than Options.RetryFor are retried in one place
// (db/retry.go), if it is known that nothing was done. A commit whose answer was lost is for the caller to repeat.
package store
