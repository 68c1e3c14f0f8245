// Package store keeps everything that precis knows in PostgreSQL: what was said, what was compacted, what was done
// for it and what it cost. It is the truth; Temporal holds ids, numbers and hashes, and may be lost.
//
//	s, err := store.Open(ctx, url, store.Options{})
//	c, _, err := s.CreateConversation(ctx, "default", store.NewConversation{ID: "c1", Format: "anthropic"})
//	res, err := s.Append(ctx, c.Ref, messages, store.AppendOptions{})
//	run, attached, err := s.RequestRun(ctx, c.Ref, store.RunRequest{Kind: "manual"})
//	…                                       // the workflow: LiveView, BeginCall, FinishCall, PutStageResult
//	m, err := s.ApplyMarker(ctx, run.Ref, marker, facts)
//	view, err := s.LiveView(ctx, c.Ref, store.LiveOptions{})
//
// # Tables
//
//	tenants         own everything below; api_keys holds hashes of keys only
//	conversations   one row each: its head, sums, usage, active marker; the lock for all that happens to it
//	messages        the transcript, append-only, as it arrived
//	markers         compactions, each on the one before it; status prepared, applied, undone, discarded
//	runs            executions of the CompactionWorkflow, made by who asks; outcome NULL while unfinished
//	run_attempts       every attempt at every stage
//	stage_results   what a stage found, for whoever does it again after a crash
//	usage_ledger    every request to a model, booked before it is sent
//	artifacts       everything large, by its SHA-256, compressed; artifact_links says whose it is
//	outbox          workflows that are to be started
//	replies         leases on one generation by the agent's model
//	enrichments     live state, versioned; segments: the out-of-band memory
//	events          the timeline
//	breakers        failures in a row, of a conversation or a vendor
//
// The columns are explained in the migrations.
//
// # What always holds
//
// Messages are numbered from 1 without gaps, in the order of their commits, and never change. A trigger refuses
// every UPDATE, DELETE and TRUNCATE; only DeleteConversationContent gets past it, for a whole conversation.
//
// Each message carries a chain hash over itself and all before it (Chain), the conversation that of its head, and a
// marker that of the last message it covers. So one hash commits to a whole history, and CheckChain names the first
// message that is not what it was.
//
// What came is given back byte for byte. It is kept as bytea: text and jsonb refuse U+0000 and lone surrogates, and
// jsonb reorders keys and rounds numbers. Text for people and numbers for queries are cleaned in one place (clean.go).
//
// Everything that changes a conversation takes its row first. Any two of append, request, apply, undo, report, open a
// reply and delete end in one of their two serial orders. The order of locks is conversation, then artifacts.
//
// A conversation has one active marker (a column), one unfinished run beside replays, one prepared marker and one open
// reply (unique partial indexes). A marker takes effect with its run's end and its event or not at all.
//
// Every write may be repeated. Those that a caller cannot tell apart from the first have a key: an append the
// client's ids or IfSeq, a stage's result (run, stage, call), a model call (run, call, attempt), a marker its run, an
// undo the marker it means. Inserts that race give every caller the first one's row: ON CONFLICT DO UPDATE … RETURNING,
// since DO NOTHING gives none.
//
// A tenant finds nothing of another's: its ids are ErrNotFound in every method.
//
// Times are the database's; leases are judged by its clock alone.
//
// # Cost
//
// An append takes four round trips and does not depend on the history. LiveView reads the messages that are live and a
// few rows. Running sums on each message give the size of any part in constant time.
//
// # Errors
//
// What a caller tells apart is a sentinel for errors.Is; a *ConflictError says which condition failed. Unavailable says
// that the database is away and the same call may pass later. Hiccups under Options.RetryFor are repeated here, in one
// place (retry.go), where it is known that nothing was done; a commit whose answer was lost is the caller's to repeat.
package store
