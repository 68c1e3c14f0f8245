package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// What a vendor's own compaction gave is kept as an artifact beside the summary that can be read. A marker refers
// to both: which of the two its model sees is decided with every read, by the model that the conversation has then.

// linkedNative makes sure that a marker's native artifact is this conversation's, as linkedArtifact does for a
// summary.
func linkedNative(ctx context.Context, tx pgx.Tx, c Conversation, n NewMarker) error {
	if (n.Native == "") != (len(n.NativeUse) == 0) {
		return invalidf("a native compaction and what it may be used for come together")
	}
	if n.Native == "" {
		return nil
	}
	return linkedArtifact(ctx, tx, c, n.Native)
}

// nativeData reads the native artifact of a marker, packed; nil when it has none.
func nativeData(ctx context.Context, q querier, c Conversation, m *Marker) ([]byte, error) {
	if m.Native == "" {
		return nil, nil
	}
	sum, err := parseHash(m.Native)
	if err != nil {
		return nil, err
	}
	return artifactData(ctx, q, c.Ref.Tenant, sum)
}
