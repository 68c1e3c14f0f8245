package store

// CommittedColumns gives each column of the tables that are evidence: "" when it is proved, else why it is not.
func CommittedColumns() map[string]map[string]string {
	out := map[string]map[string]string{}
	put := func(table, why string, columns ...string) {
		if out[table] == nil {
			out[table] = map[string]string{}
		}
		for _, c := range columns {
			out[table][c] = why
		}
	}
	for _, tables := range sealedTables {
		for _, t := range tables {
			names, _ := t.columns()
			put(t.name, "", names...)
			for column, why := range t.unsealed {
				put(t.name, why, column)
			}
		}
	}
	put("artifacts", "", "data")
	put("conversations", "", "head_seq", "head_chain", "tokens_sum", "chars_sum", "turns_sum", "event_seq",
		"event_chain",
		"seal_seq", "seal_chain", "epoch", "active_marker")
	put("messages", "", "seq", "tokens_sum", "chars_sum", "turns_sum", "created_at", "chars", "tokens", "bytes",
		"genuine", "role",
		"kind", "client_id", "chain", "native", "search_text", "sync_chain", "record", "pruned_at")
	put("messages", internalKey, "cid")
	put("events", "", "seq", "created_at", "kind", "run", "data", "chain")
	put("events", internalKey, "cid")
	put("seals", "", "n", "kind", "subject", "sha256", "chain", "record")
	put("seals", internalKey, "cid")
	put("seals", "told to a person, and nothing rests on it: what was sealed has times of its own", "created_at")
	put("artifact_links", "", "sha256")
	put("artifact_links", internalKey, "cid")
	put("artifact_links", "as in artifacts, by a foreign key", "tenant")
	return out
}
