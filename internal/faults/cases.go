package faults

import (
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

//go:embed cases/*.json
var files embed.FS

// Case is one fault case.
type Case struct {
	// Kind is the kind of fault, the name of the file that holds the case.
	Kind string
	// Name says what the case shows.
	Name string
	// JSON is the whole case, with its repeated texts written out.
	JSON json.RawMessage
}

// Cases returns all cases, in the order of their kinds.
func Cases() ([]Case, error) {
	entries, err := files.ReadDir("cases")
	if err != nil {
		return nil, err
	}
	var all []Case
	for _, entry := range entries {
		data, err := files.ReadFile(path.Join("cases", entry.Name()))
		if err != nil {
			return nil, err
		}
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, fmt.Errorf("read %s: %w", entry.Name(), err)
		}
		for i, raw := range list {
			c := Case{Kind: strings.TrimSuffix(entry.Name(), ".json")}
			if c.JSON, err = expand(raw); err != nil {
				return nil, fmt.Errorf("read case %d of %s: %w", i, entry.Name(), err)
			}
			var named struct{ Name string }
			if err := json.Unmarshal(c.JSON, &named); err != nil {
				return nil, fmt.Errorf("read case %d of %s: %w", i, entry.Name(), err)
			}
			c.Name = named.Name
			all = append(all, c)
		}
	}
	return all, nil
}
