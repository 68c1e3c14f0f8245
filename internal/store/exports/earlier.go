package exports

import (
	"encoding/json"
	"regexp"
)

var hexSHA256 = regexp.MustCompile(`^[0-9a-f]{64}$`)

// upgradeColumns converts a row of an earlier build's export to the current columns, as the migrations convert a
// database.
func upgradeColumns(table string, columns map[string]json.RawMessage) {
	switch table {
	case "messages":
		delete(columns, "search_text") // until migration 14; empty, and what a record commits to takes it as such
	case "runs":
		upgradeRun(columns)
	}
}

// upgradeRun fills the columns that migration 14 moved out of runs.numbers.
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
