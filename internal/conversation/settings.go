package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"

	"precis/internal/config"
	"precis/internal/store/conversations"
	"precis/pipeline"
)

// SettingsOf gives the settings that count for a conversation: its own over its tenant's over base, those of the
// installation. Stored ones that do not fit, as after a change of versions or of the tenant's settings beneath, are
// left out and told in the error; the others count all the same, so that nobody is kept from a conversation.
func SettingsOf(base config.Settings, c conversations.Conversation) (config.Settings, error) {
	var unfit []error
	s, err := Overlay(base, c.TenantSettings)
	if err != nil {
		unfit = append(unfit, fmt.Errorf("tenant %s: %w", c.Ref.Tenant, err))
	}
	if s, err = Overlay(s, c.Settings); err != nil {
		unfit = append(unfit, fmt.Errorf("conversation %s: %w", c.Ref, err))
	}
	return s, errors.Join(unfit...)
}

// settingKeys are the keys of config.Settings.
var settingKeys = func() map[string]bool {
	keys := map[string]bool{}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Settings]()) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			keys[name] = true
		}
	}
	return keys
}()

// misspelt gives a key that is right but for upper and lower case, which Go's decoder would take: whoever looks
// whether a key is set that is not a conversation's to set looks for its name. "" for none.
func misspelt(raw json.RawMessage) string {
	var keys map[string]json.RawMessage
	if json.Unmarshal(raw, &keys) != nil {
		return ""
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if !settingKeys[key] {
			return key
		}
	}
	return ""
}

// Overlay puts what raw sets, a JSON object of the API's settings, over base. Keys that raw does not name
// keep base's values. A key that does not exist, or a value that cannot be, is a *pipeline.Error of kind
// bad_request that names it.
func Overlay(base config.Settings, raw json.RawMessage) (config.Settings, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return base, nil
	}
	out := base
	// Decoding into a slice that is shared would write into base.
	out.Summarizers = append([]pipeline.SummarizerSpec(nil), base.Summarizers...)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) { // encoding/json names the struct that is embedded, which is in no key
			wrong.Field = strings.TrimPrefix(wrong.Field, "Settings.")
		}
		return base, pipeline.Errorf(pipeline.BadRequest, "settings: %w", err)
	}
	if key := misspelt(raw); key != "" {
		return base, pipeline.Errorf(pipeline.BadRequest, "settings: json: unknown field %q", key)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return base, pipeline.Errorf(pipeline.BadRequest, "settings: one JSON object is expected, and nothing after it")
	}
	if err := out.Validate(); err != nil {
		return base, pipeline.Errorf(pipeline.BadRequest, "settings: %w", err)
	}
	return out, nil
}
