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
	"strconv"
	"strings"

	"precis/internal/config"
	"precis/internal/store/conversations"
	"precis/pipeline"
)

// SettingsOf returns the settings that apply to a conversation: its own over its tenant's over base, those of the
// installation. Stored settings that are not valid, as after an upgrade or a change of the tenant's settings, are left
// out and reported in the error. The settings returned with it are usable, so that the conversation stays accessible.
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

// misspelt returns the first key of raw that is not the exact name of a setting, "" if there is none. Go's decoder
// ignores case, and a check whether raw sets a restricted key compares exact names.
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

// UnknownSettingError reports a key that is not the name of a setting.
type UnknownSettingError struct{ Name string }

func (e *UnknownSettingError) Error() string { return fmt.Sprintf("json: unknown field %q", e.Name) }

// Overlay returns base with the settings in raw, a JSON object as in the API. Keys that raw does not have keep the
// values of base. The error is a *pipeline.Error of kind bad_request. Its cause is an *UnknownSettingError, an error
// of encoding/json, or the *pipeline.SettingError of each value that is not valid.
func Overlay(base config.Settings, raw json.RawMessage) (config.Settings, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return base, nil
	}
	out, err := overlay(base, raw)
	if err != nil {
		return base, pipeline.Errorf(pipeline.BadRequest, "settings: %w", err)
	}
	return out, nil
}

func overlay(base config.Settings, raw json.RawMessage) (config.Settings, error) {
	out := base
	// Decoding into a shared slice would write into base.
	out.Summarizers = append([]pipeline.SummarizerSpec(nil), base.Summarizers...)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		return base, decodingError(err)
	}
	if key := misspelt(raw); key != "" {
		return base, &UnknownSettingError{key}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return base, errors.New("one JSON object is expected, and nothing after it")
	}
	return out, out.Validate()
}

// decodingError returns an error of the decoder in terms of the settings. encoding/json has no type for an unknown
// field, only a text.
func decodingError(err error) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) { // the path begins with the name of an embedded struct, which is not part of a key
		wrong.Field = strings.TrimPrefix(wrong.Field, "Settings.")
		return err
	}
	if quoted, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		if name, unquoted := strconv.Unquote(quoted); unquoted == nil {
			return &UnknownSettingError{name}
		}
	}
	return err
}
