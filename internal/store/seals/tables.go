package seals

// Table lists the columns of a table that its seals hold.
type Table struct {
	Name string
	// Key are the columns that identify a row within the conversation or run.
	Key []string
	// where picks the rows of a subject: $1 is the cid, $2 the subject.
	where string
	order string
	text  []string
	bytes []string
	times []string
	// Changes are the columns that may differ between two seals of one row. Open reports whether a row is unfinished,
	// so that all of them may, also after the end of the run.
	Changes []string
	Open    func(Row) bool
	// Late reports whether a row may be added after the end of its run, given the rows before; nil: none may.
	Late func(row Row, before []Row) bool
	// Filled are columns that builds before seal rule 1 filled in when a model's answer came after the end of its run.
	Filled []string
	// Unsealed are the columns that no seal holds, with the reason.
	Unsealed map[string]string
}

const (
	InternalKey = "the database's own key, another one after an import"
	working     = "a working figure that the next append or read replaces; no record rests on it"
	estimated   = "an estimate, for the budget of the day; what was used is in the other columns"
)

// Tables are the tables whose rows seals hold, by kind of subject. All columns are listed: TestEveryColumnIsCommittedTo
// fails for a new column that is not.
var Tables = map[Kind][]Table{
	Conversation: {{
		Name: "conversations", Key: []string{"id"}, where: `cid = $1 AND $2 <> ''`, order: `cid`,
		text: []string{
			"context_window", "max_output", "learned_window", "overhead_tokens", "ephemeral", "tenant",
			"id", "format", "vendor", "model",
		},
		bytes: []string{"created_hash", "system", "tools", "envelope", "settings", "metadata"},
		times: []string{"created_at", "content_deleted_at"},
		Changes: []string{
			"context_window", "max_output", "learned_window", "overhead_tokens", "vendor", "model", "system", "tools",
			"envelope", "settings", "metadata", "content_deleted_at",
		},
		Unsealed: map[string]string{
			"cid":      InternalKey,
			"head_seq": "compared with the messages", "head_chain": "compared with the messages",
			"tokens_sum": "compared with the messages", "chars_sum": "compared with the messages",
			"turns_sum": "compared with the messages", "event_seq": "compared with the events",
			"event_chain": "compared with the events", "seal_seq": "compared with the seals",
			"seal_chain": "compared with the seals", "epoch": "in every seal's record",
			"active_marker": "in every seal's record", "auto_hold_turns": working, "server_tokens": working,
			"server_covers_seq": working, "server_epoch": working, "server_estimate": working, "calibration": working,
			"updated_at": working, "measured_tokens": working, "measured_seq": working, "measured_epoch": working,
			"sync_seq": working, "sync_chain": working, "search_seq": working, "memory_due_at": working,
		},
	}},
	Run: {
		{
			Name: "runs", Key: []string{"id"}, where: `cid = $1 AND id = $2`, order: `id`,
			text: []string{
				"requested_head", "covers_from", "covers_to", "covered_messages", "tokens_before", "tokens_after",
				"full", "force_external", "prepare", "digest", "id", "tenant", "workflow_id", "temporal_run_id",
				"trigger_kind", "prompt_override", "summarizer_override", "outcome", "error_kind", "reason",
				"summarizer", "rung", "prompt_name", "prompt_version", "mode", "replay_of", "trigger", "versions",
				"verification", "numbers", "head_seq",
			},
			bytes: []string{"covered_chain", "context_sha256", "snapshot_sha256", "focus", "settings"},
			times: []string{"created_at", "started_at", "finished_at"},
			// A prepared summary is applied or discarded later; the focus is deleted with the conversation's content.
			Changes: []string{
				"outcome", "reason", "tokens_before", "tokens_after", "numbers", "context_sha256",
				"snapshot_sha256", "focus",
			},
			Filled:   []string{"summarizer", "rung", "prompt_name", "prompt_version", "mode", "verification", "digest"},
			Unsealed: map[string]string{"cid": InternalKey},
		},
		{
			Name: "run_attempts", Key: []string{"stage", "call", "attempt"}, where: `run = $2 AND $1::bigint > 0`,
			order: `call, stage, attempt`,
			text: []string{
				"ms", "call", "attempt", "run", "stage", "rung", "summarizer", "outcome", "error_kind", "message",
				"next", "worker", "numbers", "artifacts",
			},
			times:   []string{"started_at"},
			Changes: []string{"next"},
			Open:    func(r Row) bool { return r.Value("outcome") == "started" },
			// An attempt that has ended is a fact. None begins after the end, but the retry of one that was lost.
			Late:     func(r Row, before []Row) bool { return r.Value("outcome") != "started" || retried(r, before) },
			Unsealed: map[string]string{"id": InternalKey},
		},
		{
			Name: "stage_results", Key: []string{"stage", "call"}, where: `run = $2 AND $1::bigint > 0`,
			order: `call, stage`, text: []string{"call", "run", "stage"}, bytes: []string{"result"},
			times: []string{"created_at"},
			Late:  func(Row, []Row) bool { return true }, // of the stage that ended the run
		},
		{
			Name: "replays", Key: []string{"run"}, where: `run = $2 AND $1::bigint > 0`, order: `run`,
			text:  []string{"live", "apply", "identical", "run", "original", "batch"},
			bytes: []string{"comparison_sha256"}, Changes: []string{"identical", "comparison_sha256"},
			Open: func(r Row) bool { return r.Values["comparison_sha256"] == nil },
		},
		{
			Name: "usage_ledger", Key: []string{"call", "attempt"}, where: `cid = $1 AND run = $2`,
			order: `call, attempt`,
			text: []string{
				"input_tokens", "cached_input_tokens", "cache_write_tokens", "output_tokens", "call", "attempt", "run",
				"tenant", "booked_under", "vendor", "model", "state", "error_kind", "request_id",
			},
			bytes: []string{"request_sha256", "answer_sha256"}, times: []string{"started_at", "finished_at"},
			Open: func(r Row) bool { return r.Value("state") != "complete" },
			// A request that was sent is a fact. No request is booked after the end.
			Late: func(r Row, _ []Row) bool { return r.Value("state") != "started" },
			Unsealed: map[string]string{
				"cid": InternalKey, "reserved_tokens": estimated, "lost_tokens": estimated,
			},
		},
		{
			Name: "artifacts", Key: []string{"sha256"}, order: `sha256`,
			where: `tenant = (SELECT tenant FROM conversations WHERE cid = $1) AND sha256 IN (` + artifactsOfRun + `)`,
			text:  []string{"size", "tenant", "kind"}, bytes: []string{"sha256"}, times: []string{"created_at"},
			Late: func(Row, []Row) bool { return true }, // those that a late row refers to
			Unsealed: map[string]string{
				"data": "its SHA-256 is its name", "touched_at": working, "pruned_at": "in the seal of the pruning",
			},
		},
	},
	Marker: {{
		Name: "markers", Key: []string{"id"}, where: `cid = $1 AND id = $2`, order: `id`,
		text: []string{
			"epoch", "covers_from", "covers_to", "covered_messages", "tokens_before", "tokens_after", "summary_tokens",
			"valve_up_to", "calibration", "digest", "id", "tenant", "base", "run", "status", "reason", "origin",
			"valve", "carried", "draft", "native",
		},
		bytes: []string{"covered_chain", "summary_sha256", "native_sha256"},
		times: []string{"created_at", "applied_at", "ended_at"},
		Changes: []string{
			"epoch", "tokens_before", "tokens_after", "summary_tokens", "summary_sha256", "status", "reason",
			"applied_at", "ended_at",
		},
		Unsealed: map[string]string{"cid": InternalKey},
	}},
	LiveState: {{
		Name: "enrichments", Key: []string{"key", "version"}, where: `cid = $1 AND key || '@' || version = $2`,
		order: `key, version`, text: []string{"version", "after_seq", "epoch", "key", "tokens"},
		bytes: []string{"value", "source"}, times: []string{"created_at"},
		Unsealed: map[string]string{"cid": InternalKey},
	}},
}

// artifactsOfRun selects the hashes that the rows of run $2 refer to.
const artifactsOfRun = `SELECT decode(value, 'hex') FROM run_attempts s, jsonb_each_text(s.artifacts) WHERE s.run = $2
	AND value ~ '^[0-9a-f]{64}$'
	UNION SELECT context_sha256 FROM runs WHERE id = $2 AND context_sha256 IS NOT NULL
	UNION SELECT snapshot_sha256 FROM runs WHERE id = $2 AND snapshot_sha256 IS NOT NULL
	UNION SELECT request_sha256 FROM usage_ledger WHERE run = $2 AND request_sha256 IS NOT NULL
	UNION SELECT answer_sha256 FROM usage_ledger WHERE run = $2 AND answer_sha256 IS NOT NULL
	UNION SELECT comparison_sha256 FROM replays WHERE run = $2 AND comparison_sha256 IS NOT NULL
	UNION SELECT summary_sha256 FROM markers WHERE run = $2 AND summary_sha256 IS NOT NULL
	UNION SELECT native_sha256 FROM markers WHERE run = $2 AND native_sha256 IS NOT NULL`

// TableOf returns the table with a name among those that seals of the kind hold.
func TableOf(kind Kind, name string) (Table, bool) {
	for _, t := range Tables[kind] {
		if t.Name == name {
			return t, true
		}
	}
	return Table{}, false
}
