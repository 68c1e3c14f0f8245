package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"precis/internal/api/wire"
	"precis/internal/store"
	"precis/internal/store/livestate"
	"precis/pipeline"
)

// ownKey matches the keys that clients may define.
var ownKey = regexp.MustCompile(`^x-[a-z0-9_-]{1,62}$`)

func checkKey(key string) error {
	if slices.Contains(pipeline.EnrichmentKeys, key) || ownKey.MatchString(key) {
		return nil
	}
	return invalid("key", "is %q; it is one of %s, or begins with x-", key, strings.Join(pipeline.EnrichmentKeys, ", "))
}

// GetState returns the current value of a key, which may not be in the context yet.
func (s *Service) GetState(ctx context.Context, ref store.ConversationRef, key string) (wire.StateEntry, error) {
	if err := checkKey(key); err != nil {
		return wire.StateEntry{}, err
	}
	e, err := s.Store.LiveState.Get(ctx, ref, key)
	if err != nil {
		return wire.StateEntry{}, refused(err)
	}
	return stateEntry(e)
}

// ListState returns the current values of all keys that are set, ordered by key.
func (s *Service) ListState(ctx context.Context, ref store.ConversationRef) ([]wire.StateEntry, error) {
	found, err := s.Store.LiveState.List(ctx, ref)
	if err != nil {
		return nil, refused(err)
	}
	list := make([]wire.StateEntry, len(found))
	for i, e := range found {
		if list[i], err = stateEntry(e); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func stateEntry(e livestate.Enrichment) (wire.StateEntry, error) {
	out := wire.StateEntry{Key: e.Key, Version: e.Version, Updated: e.Created.UTC()}
	if len(e.Source) == 0 {
		text := string(e.Value)
		out.Text = &text
		return out, nil
	}
	if err := json.Unmarshal(e.Source, &out.StateValue); err != nil {
		return out, refused(fmt.Errorf("read the state %q: %w", e.Key, err))
	}
	return out, nil
}

// PutState sets a key. The value is in the context from the next turn on, or from the next compaction if that is
// earlier, so that the context does not change during a turn. An empty value removes the key.
func (s *Service) PutState(ctx context.Context, ref store.ConversationRef, key string,
	v wire.StateValue,
) (wire.StateEntry, error) {
	if err := checkKey(key); err != nil {
		return wire.StateEntry{}, err
	}
	text, err := renderValue(v)
	if err != nil {
		return wire.StateEntry{}, err
	}
	var source json.RawMessage
	if v.Text == nil && text != "" {
		if source, err = json.Marshal(v); err != nil {
			return wire.StateEntry{}, refused(fmt.Errorf("encode the state: %w", err))
		}
	}
	e, err := s.Store.LiveState.SetRendered(ctx, ref, key, []byte(text), source)
	if errors.Is(err, livestate.ErrKeys) {
		return wire.StateEntry{}, tooManyKeys(ref)
	}
	if err != nil {
		return wire.StateEntry{}, refused(err)
	}
	return stateEntry(e)
}

// DeleteState removes a key. Removing one that is not set changes nothing.
func (s *Service) DeleteState(ctx context.Context, ref store.ConversationRef, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	_, err := s.Store.LiveState.Set(ctx, ref, key, nil)
	return refused(err)
}

// renderValue returns the value as it is in a context: a text unchanged, one item a line.
func renderValue(v wire.StateValue) (string, error) {
	switch {
	case v.Text != nil && v.Items != nil:
		return "", invalid("items", "cannot be combined with text: send one of the two")
	case v.Text != nil:
		return *v.Text, nil
	}
	lines := make([]string, 0, len(v.Items))
	for i, raw := range v.Items {
		line, err := renderItem(raw)
		if err != nil {
			return "", invalid(fmt.Sprintf("items[%d]", i), "%s", err)
		}
		if line != "" {
			lines = append(lines, "- "+strings.ReplaceAll(line, "\n", "\n  "))
		}
	}
	return strings.Join(lines, "\n"), nil
}

// itemTexts and itemStates are the fields in which agents put an item's text and its state.
var (
	itemTexts  = []string{"text", "content", "title", "name"}
	itemStates = []string{"status", "state"}
)

// renderItem returns the line of an item: a string, the text and state of an object, or the object as compact JSON.
func renderItem(raw json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return strings.TrimSpace(text), nil
	}
	var object map[string]any
	if err := json.Unmarshal(raw, &object); err != nil || object == nil {
		return "", fmt.Errorf("is %s; it is a string or an object", pipeline.Truncate(string(raw), 60))
	}
	text = firstText(object, itemTexts)
	if text == "" {
		var compact bytes.Buffer
		if err := json.Compact(&compact, raw); err != nil {
			return "", err
		}
		return compact.String(), nil
	}
	if state := firstText(object, itemStates); state != "" {
		return "[" + state + "] " + text, nil
	}
	return text, nil
}

func firstText(object map[string]any, keys []string) string {
	for _, key := range keys {
		if s, ok := object[key].(string); ok && strings.TrimSpace(s) != "" {
			return strings.TrimSpace(s)
		}
	}
	return ""
}
