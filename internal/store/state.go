package store

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
)

// State is what a view of a conversation holds beside messages, markers and the versions of its enrichments. Those
// never change, so with it the same view is made again later, whatever has become of the conversation since. It is kept
// as an artifact; a run notes with each step which one the step worked on.
type State struct {
	// Head is the last message of the view, 0: none.
	Head int64 `json:"head"`
	// ActiveMarker is the marker that counted, "": the full history. Epoch is the conversation's.
	ActiveMarker string `json:"active_marker,omitempty"`
	Epoch        int64  `json:"epoch"`

	Vendor string `json:"vendor,omitempty"`
	Model  string `json:"model,omitempty"`
	// Window and MaxOutput in tokens; Window is the one that counted, whoever said it.
	Window    int `json:"window,omitempty"`
	MaxOutput int `json:"max_output,omitempty"`
	// System, Tools and Envelope are artifacts, "": not given.
	System   string `json:"system,omitempty"`
	Tools    string `json:"tools,omitempty"`
	Envelope string `json:"envelope,omitempty"`
	// Settings are the effective ones.
	Settings  json.RawMessage `json:"settings,omitempty"`
	Overhead  int             `json:"overhead"`
	Ephemeral bool            `json:"ephemeral,omitempty"`
	AutoHeld  bool            `json:"auto_held,omitempty"`
	Usage     StateUsage      `json:"usage"`

	TurnStart   int64               `json:"turn_start"`
	Enrichments []EnrichmentVersion `json:"enrichments,omitempty"`
	// Prepared is the marker that waited, "": none.
	Prepared  string `json:"prepared,omitempty"`
	ReplyOpen bool   `json:"reply_open,omitempty"`
}

// StateUsage is a Usage as it is kept.
type StateUsage struct {
	Tokens      int     `json:"tokens,omitempty"`
	CoversSeq   int64   `json:"covers_seq,omitempty"`
	Estimate    int     `json:"estimate,omitempty"`
	Stale       bool    `json:"stale,omitempty"`
	Calibration float64 `json:"calibration,omitempty"`
}

// RoleState is the role of the state among the artifacts of a step.
const RoleState = "state"

// FirstState is the state that the first step of a run worked on, "": its record holds none. The run has its steps.
func (r Run) FirstState() string {
	for _, s := range r.Steps {
		if sha := s.Artifacts[RoleState]; sha != "" {
			return sha
		}
	}
	return ""
}

// EnrichmentVersion names one version of a piece of live state.
type EnrichmentVersion struct {
	Key     string `json:"key"`
	Version int64  `json:"version"`
}

// KeepState keeps the state of a view that a run works on, with the settings that count for it. It gives the references
// by what they are: "state" is the state itself, "system", "tools" and "envelope" what belongs to it. Keeping the same
// state again is harmless, and costs nothing while this Store remembers it.
func (s *Store) KeepState(ctx context.Context, ref RunRef, v LiveView,
	settings json.RawMessage,
) (map[string]string, error) {
	c := v.Conversation
	refs := map[string]string{}
	parts := map[string]json.RawMessage{"system": c.System, "tools": c.Tools, "envelope": c.Envelope}
	for kind, raw := range parts {
		if raw != nil {
			refs[kind] = Hash(sha256.Sum256(raw)).String()
		}
	}
	state := State{
		Head: v.Head(), ActiveMarker: c.ActiveMarker, Epoch: c.Epoch, Vendor: c.Vendor, Model: c.Model,
		Window: c.Window, MaxOutput: c.MaxOutput, System: refs["system"], Tools: refs["tools"],
		Envelope: refs["envelope"], Settings: settings, Overhead: c.OverheadTokens, Ephemeral: c.Ephemeral,
		AutoHeld: c.AutoHeld, Usage: StateUsage(c.Usage), TurnStart: v.TurnStart, ReplyOpen: v.ReplyOpen,
	}
	for _, e := range v.Enrichments {
		state.Enrichments = append(state.Enrichments, EnrichmentVersion{e.Key, e.Version})
	}
	if v.Prepared != nil {
		state.Prepared = v.Prepared.ID
	}
	data, err := json.Marshal(state)
	if err != nil {
		return nil, fmt.Errorf("store: encode a conversation's state: %w", err)
	}
	refs[RoleState], parts[RoleState] = Hash(sha256.Sum256(data)).String(), data
	key := ref.ID + " " + refs[RoleState]
	if s.states.has(key) {
		return refs, nil
	}
	err = s.write(ctx, "keep a conversation's state", func(ctx context.Context, tx pgx.Tx) error {
		cid, err := readable(ctx, tx, c.Ref)
		if err != nil {
			return err
		}
		for _, kind := range slices.Sorted(maps.Keys(refs)) {
			if _, err := putArtifact(ctx, tx, cid, c.Ref.Tenant, kind, s.pack(parts[kind])); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		s.states.add(key)
	}
	return refs, err
}

// recent remembers some keys, for a while.
type recent struct {
	mu   sync.Mutex
	keys map[string]bool
}

// maxRecent bounds what is remembered: a run has few states, and a worker few runs at once.
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

// GetState reads a kept state. One that was pruned is ErrNotFound.
func (s *Store) GetState(ctx context.Context, tenant, sha string) (State, error) {
	var state State
	data, err := s.GetArtifact(ctx, tenant, sha)
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, fmt.Errorf("store: read a conversation's state: %w", err)
	}
	return state, nil
}

// LiveViewAt makes the view again that a state was kept of. What BeneathDigest of the options says counts; the other
// options are the state's. What the view was made from and has been deleted or pruned since is ErrNotFound.
func (s *Store) LiveViewAt(ctx context.Context, ref ConversationRef, state State, o LiveOptions) (LiveView, error) {
	var v LiveView
	var packed []byte
	texts := map[string][]byte{}
	for _, sha := range []string{state.System, state.Tools, state.Envelope} {
		if sha == "" {
			continue
		}
		data, err := s.GetArtifact(ctx, ref.Tenant, sha)
		if err != nil {
			return v, err
		}
		texts[sha] = data
	}
	o.From, o.UpTo = nil, state.Head
	if state.Head == 0 {
		o.UpTo = -1 // before the first message
	}
	err := s.snapshot(ctx, "read what was live", func(ctx context.Context, tx pgx.Tx) error {
		c, err := conversation(ctx, tx, ref)
		if err != nil {
			return err
		}
		c.ActiveMarker, c.Epoch, c.Vendor, c.Model = state.ActiveMarker, state.Epoch, state.Vendor, state.Model
		c.Window, c.MaxOutput, c.LearnedWindow = state.Window, state.MaxOutput, 0
		c.System, c.Tools, c.Envelope = texts[state.System], texts[state.Tools], texts[state.Envelope]
		c.Settings, c.OverheadTokens = nil, state.Overhead
		c.Ephemeral, c.AutoHeld, c.Usage, c.Measured = state.Ephemeral, state.AutoHeld, Usage(state.Usage), nil
		if v, packed, err = liveView(ctx, tx, c, o); err != nil {
			return err
		}
		v.TurnStart, v.ReplyOpen, v.Prepared = state.TurnStart, state.ReplyOpen, nil
		if state.Prepared != "" {
			m, err := marker(ctx, tx, c.cid, state.Prepared)
			if err != nil {
				return err
			}
			v.Prepared = &m
		}
		v.Enrichments, err = enrichmentsAt(ctx, tx, c.cid, state.Enrichments)
		return err
	})
	if err != nil {
		return v, err
	}
	return s.unpackSummary(v, packed)
}

// enrichmentsAt reads versions of state, in their order.
func enrichmentsAt(ctx context.Context, q querier, cid int64, versions []EnrichmentVersion) ([]Enrichment, error) {
	if len(versions) == 0 {
		return nil, nil
	}
	keys, numbers := make([]string, len(versions)), make([]int64, len(versions))
	for i, v := range versions {
		keys[i], numbers[i] = v.Key, v.Version
	}
	list, err := all(ctx, q, scanEnrichment, `SELECT `+enrichmentColumns+` FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS f(key, version, n)
		JOIN enrichments e ON e.cid = $1 AND e.key = f.key AND e.version = f.version ORDER BY f.n`, cid, keys, numbers)
	if err == nil && len(list) != len(versions) {
		err = notFoundf("a version of the conversation's state")
	}
	return list, err
}
