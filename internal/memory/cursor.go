package memory

import (
	"encoding/base64"
	"encoding/json"
	"fmt"

	"precis/internal/store"
)

// searchPlace is the content of a cursor.
type searchPlace struct {
	Match string  `json:"m"`
	Rank  float64 `json:"r,omitempty"`
	Seq   int64   `json:"s"`
	Note  string  `json:"n,omitempty"`
}

func makePlace(p searchPlace) string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and numbers have no errors
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

func parsePlace(cursor string) (*searchPlace, error) {
	if cursor == "" {
		return nil, nil
	}
	var p searchPlace
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil || p.Match != matchWords && p.Match != matchSubstring || p.Seq < 0 {
		return nil, fmt.Errorf("the cursor is not from a search: %w", store.ErrInvalid)
	}
	return &p, nil
}
