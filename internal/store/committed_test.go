package store_test

import "precis/internal/store/seals"

// committedColumns returns each column of the tables that are evidence: "" if verification covers it, else why it does
// not.
func committedColumns() map[string]map[string]string {
	out := map[string]map[string]string{}
	put := func(table, why string, columns ...string) {
		if out[table] == nil {
			out[table] = map[string]string{}
		}
		for _, c := range columns {
			out[table][c] = why
		}
	}
	for _, tables := range seals.Tables {
		for _, t := range tables {
			names, _ := t.Columns()
			put(t.Name, "", names...)
			for column, why := range t.Unsealed {
				put(t.Name, why, column)
			}
		}
	}
	put("artifacts", "", "data")
	put("conversations", "", "head_seq", "head_chain", "tokens_sum", "chars_sum", "turns_sum", "event_seq",
		"event_chain",
		"seal_seq", "seal_chain", "epoch", "active_marker")
	put("messages", "", "seq", "tokens_sum", "chars_sum", "turns_sum", "created_at", "chars", "tokens", "bytes",
		"genuine", "role",
		"kind", "client_id", "chain", "native", "sync_chain", "record", "pruned_at")
	put("messages", seals.InternalKey, "cid")
	put("events", "", "seq", "created_at", "kind", "run", "data", "chain")
	put("events", seals.InternalKey, "cid")
	put("seals", "", "n", "kind", "subject", "sha256", "chain", "record")
	put("seals", seals.InternalKey, "cid")
	put("seals", "for display only: the sealed rows have their own times", "created_at")
	put("artifact_links", "", "sha256")
	put("artifact_links", seals.InternalKey, "cid")
	put("artifact_links", "as in artifacts, by a foreign key", "tenant")
	return out
}
