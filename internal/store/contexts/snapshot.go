package contexts

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"precis/internal/contract"
	"precis/internal/store/artifacts"
	"precis/internal/store/conversations"
	"precis/internal/store/db"
	"precis/internal/store/livestate"
	"precis/internal/store/markers"
)

// Snapshot is everything in a Source except messages, markers and versions of live state. Those never change, so that
// At can build the same Source from a Snapshot later. It is stored as an artifact, to which each attempt of a run
// refers.
type Snapshot struct {
	// Head is the last message of the source, 0: none.
	Head int64 `json:"head"`
	// ActiveMarker is the active marker, "": the full history. Epoch is the conversation's.
	ActiveMarker string `json:"active_marker,omitempty"`
	Epoch        int64  `json:"epoch"`

	Vendor string `json:"vendor,omitempty"`
	Model  string `json:"model,omitempty"`
	// Window and MaxOutput in tokens; Window is the effective one.
	Window    int `json:"window,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
	// System, Tools and Envelope are artifacts, "": not given.
	System   string `json:"system,omitempty"`
	Tools    string `json:"tools,omitempty"`
	Envelope string `json:"envelope,omitempty"`
	// Settings are the effective settings.
	Settings  json.RawMessage `json:"settings,omitempty"`
	Overhead  int             `json:"overhead"`
	Ephemeral bool            `json:"ephemeral,omitempty"`
	AutoHeld  bool            `json:"auto_held,omitempty"`
	Usage     SnapshotUsage   `json:"usage"`

	// TextRules is that of the build that made the snapshot, 0: of one before there were any.
	TextRules int `json:"text_rules,omitempty"`

	TurnStart   int64               `json:"turn_start"`
	Enrichments []livestate.Version `json:"enrichments,omitempty"`
	// Prepared is the prepared marker, "": none.
	Prepared  string `json:"prepared,omitempty"`
	ReplyOpen bool   `json:"reply_open,omitempty"`
}

// TextRules is the version of the rules by which texts are redacted and escaped on their way into a prompt or a
// context. A change after which they come out differently needs a new number, and the old rules for what was recorded
// with them.
const TextRules = 1

// SnapshotUsage is a conversations.Usage in a Snapshot.
type SnapshotUsage struct {
	Tokens      int     `json:"tokens,omitempty"`
	CoversSeq   int64   `json:"covers_seq,omitempty"`
	Estimate    int     `json:"estimate,omitempty"`
	Stale       bool    `json:"stale,omitempty"`
	Calibration float64 `json:"calibration,omitempty"`
}

// KeepSnapshot stores the snapshot of the source that a run works on, with its effective settings. It returns
// references by kind: "state" is the snapshot itself, "system", "tools" and "envelope" are its parts. Storing the same
// snapshot again has no effect, and no cost while this Store remembers it.
func (s *Store) KeepSnapshot(ctx context.Context, ref db.RunRef, v Source,
	settings json.RawMessage,
) (map[contract.ArtifactKind]string, error) {
	c := v.Conversation
	refs := map[contract.ArtifactKind]string{}
	parts := map[contract.ArtifactKind]json.RawMessage{
		contract.ArtifactSystem: c.System, contract.ArtifactTools: c.Tools, contract.ArtifactEnvelope: c.Envelope,
	}
	for kind, raw := range parts {
		if raw != nil {
			refs[kind] = db.Hash(sha256.Sum256(raw)).String()
		}
	}
	state := Snapshot{
		Head: v.Head(), ActiveMarker: c.ActiveMarker, Epoch: c.Epoch, Vendor: c.Vendor, Model: c.Model,
		Window: c.Window, MaxOutput: c.MaxOutput, System: refs[contract.ArtifactSystem],
		Tools: refs[contract.ArtifactTools], Envelope: refs[contract.ArtifactEnvelope], Settings: settings,
		Overhead: c.OverheadTokens, Ephemeral: c.Ephemeral, AutoHeld: c.AutoHeld, Usage: SnapshotUsage(c.Usage),
		TurnStart: v.TurnStart, ReplyOpen: v.ReplyOpen,
	}
	if !v.OldRules {
		state.TextRules = TextRules
	}
	for _, e := range v.Enrichments {
		state.Enrichments = append(state.Enrichments, livestate.Version{Key: e.Key, Version: e.Version})
	}
	if v.Prepared != nil {
		state.Prepared = v.Prepared.ID
	}
	data, err := json.Marshal(state)
	if err != nil {
		return nil, db.Failed("encode a conversation's state", err)
	}
	refs[contract.ArtifactSnapshot], parts[contract.ArtifactSnapshot] = db.Hash(sha256.Sum256(data)).String(), data
	key := ref.ID + " " + refs[contract.ArtifactSnapshot]
	if s.kept.has(key) {
		return refs, nil
	}
	err = s.db.Write(ctx, "keep a conversation's state", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := conversations.Readable(ctx, tx, c.Ref)
		if err != nil {
			return err
		}
		for _, kind := range slices.Sorted(maps.Keys(refs)) {
			if _, err := artifacts.Put(ctx, tx, cid, c.Ref.Tenant, kind, s.db.Pack(parts[kind])); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.kept.add(key)
	}
	return refs, err
}

// recent remembers the last keys.
type recent struct {
	mu   sync.Mutex
	keys map[string]bool
}

// maxRecent bounds the keys in recent. A run has few snapshots, and a worker few runs at once.
const maxRecent = 4096

func (r *recent) has(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys[key]
}

func (r *recent) add(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keys == nil || len(r.keys) >= maxRecent {
		r.keys = map[string]bool{}
	}
	r.keys[key] = true
}

// Snapshot reads a stored snapshot. A pruned one is ErrNotFound.
func (s *Store) Snapshot(ctx context.Context, tenant, sha string) (Snapshot, error) {
	var state Snapshot
	data, err := artifacts.Get(ctx, s.db, tenant, sha)
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, db.Failed("read a conversation's state", err)
	}
	return state, nil
}

// At builds the source of a snapshot again. Of the options it uses BeneathDigest; the snapshot determines the others.
// It returns ErrNotFound if a part of the source was deleted or pruned since.
func (s *Store) At(ctx context.Context, ref db.ConversationRef, state Snapshot, o Options) (Source, error) {
	var v Source
	var packed []byte
	texts := map[string][]byte{}
	for _, sha := range []string{state.System, state.Tools, state.Envelope} {
		if sha == "" {
			continue
		}
		data, err := artifacts.Get(ctx, s.db, ref.Tenant, sha)
		if err != nil {
			return v, err
		}
		texts[sha] = data
	}
	o.From, o.UpTo = nil, state.Head
	if state.Head == 0 {
		o.UpTo = -1 // before the first message
	}
	err := s.db.Snapshot(ctx, "read what was live", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversations.Find(ctx, tx, ref)
		if err != nil {
			return err
		}
		c.ActiveMarker, c.Epoch, c.Vendor, c.Model = state.ActiveMarker, state.Epoch, state.Vendor, state.Model
		c.Window, c.MaxOutput, c.LearnedWindow = state.Window, state.MaxOutput, 0
		c.System, c.Tools, c.Envelope = texts[state.System], texts[state.Tools], texts[state.Envelope]
		c.Settings, c.OverheadTokens = nil, state.Overhead
		c.Ephemeral, c.AutoHeld, c.Usage, c.Measured = state.Ephemeral, state.AutoHeld,
			conversations.Usage(state.Usage), nil
		if v, packed, err = ReadLocked(ctx, tx, c, o); err != nil {
			return err
		}
		v.TurnStart, v.ReplyOpen, v.Prepared = state.TurnStart, state.ReplyOpen, nil
		v.OldRules = state.TextRules < TextRules
		if state.Prepared != "" {
			m, err := markers.Find(ctx, tx, c.CID, state.Prepared)
			if err != nil {
				return err
			}
			v.Prepared = &m
		}
		v.Enrichments, err = livestate.At(ctx, tx, c.CID, state.Enrichments)
		return err
	})
	if err != nil {
		return v, err
	}
	return Unpack(s.db, v, packed)
}
