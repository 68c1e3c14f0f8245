package seals

import (
	"time"

	"precis/internal/store/db"
)

// Pruned is what one pruning took from a conversation. The hashes are those of what was there, so that everything else
// can still be proved.
type Pruned struct {
	// At is when it was, the pruned_at of what went; zero in seals of builds that did not note it.
	At        time.Time        `json:"at,omitzero"`
	Messages  []PrunedMessage  `json:"messages,omitempty"`
	Artifacts []PrunedArtifact `json:"artifacts,omitempty"`
}

// PrunedMessage is a message whose content gave way to a placeholder.
type PrunedMessage struct {
	Seq int64 `json:"seq"`
	// Native is the SHA-256 of what was there, Placeholder that of what is there now.
	Native      db.Hash `json:"native"`
	Placeholder db.Hash `json:"placeholder"`
	// Bytes of the content that went.
	Bytes int64 `json:"bytes"`
}

// PrunedArtifact is an artifact whose content went.
type PrunedArtifact struct {
	SHA256 db.Hash `json:"sha256"`
	Kind   string  `json:"kind"`
	Size   int64   `json:"size"`
}
