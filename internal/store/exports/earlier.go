package exports

import (
	"encoding/json"
	"regexp"
)

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// upgradeColumns turns a row of an earlier build's export into what it is now, as the migrations did with the rows of
// a database.
func upgradeColumns(table string, columns map[string]json.RawMessage) {
	switch table {
	case "messages":
		delete(columns, "search_text") // until migration 14; empty, and what a record commits to takes it as such
	case "runs":
		upgradeRun(columns)
	}
}

// upgradeRun fills in the columns that migration 14 took out of runs.numbers.
func upgradeRun(columns map[string]json.RawMessage) {
	if _, there := columns["head_seq"]; there {
		return
	}
	var numbers struct {
		Head  json.RawMessage `json:"head"`
		State string          `json:"state"`
	}
	if json.Unmarshal(columns["numbers"], &numbers) != nil {
		return
	}
	if len(numbers.Head) > 0 {
		columns["head_seq"] = numbers.Head
	}
	if hexSHA256.MatchString(numbers.State) {
		columns["snapshot_sha256"] = quoted(`\x` + numbers.State)
	}
}
