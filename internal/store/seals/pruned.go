package seals

import (
	"time"

	"precis/internal/store/db"
)

// Pruned is what one pruning removed from a conversation. It has the hashes of the removed content, so that everything
// else can still be verified.
type Pruned struct {
	// At is the time of the pruning, which is pruned_at in the pruned rows; zero in seals of builds that did not record
	// it.
	At        time.Time        `json:"at,omitzero"`
	Messages  []PrunedMessage  `json:"messages,omitempty"`
	Artifacts []PrunedArtifact `json:"artifacts,omitempty"`
}

// PrunedMessage is a message whose content was replaced by a placeholder.
type PrunedMessage struct {
	Seq int64 `json:"seq"`
	// Native is the SHA-256 of the removed content, Placeholder that of the placeholder.
	Native      db.Hash `json:"native"`
	Placeholder db.Hash `json:"placeholder"`
	// Bytes is the size of the removed content.
	Bytes int64 `json:"bytes"`
}

// PrunedArtifact is an artifact whose content was removed.
type PrunedArtifact struct {
	SHA256 db.Hash `json:"sha256"`
	Kind   string  `json:"kind"`
	Size   int64   `json:"size"`
}
