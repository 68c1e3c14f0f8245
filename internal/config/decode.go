package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"regexp"
	"strconv"

	"github.com/go-viper/mapstructure/v2"

	"precis/pipeline"
)

// decoderConfig makes mapstructure as strict as the documentation of the keys: names in their exact case, and no
// conversion that could lose or guess anything.
func decoderConfig(out any) *mapstructure.DecoderConfig {
	return &mapstructure.DecoderConfig{
		Result:     out,
		TagName:    "json",
		MatchName:  func(key, field string) bool { return key == field },
		DecodeHook: strict,
	}
}

// decode fills out with a value as a source gives it.
func decode(value, out any) error {
	decoder, err := mapstructure.NewDecoder(decoderConfig(out))
	if err != nil {
		return err
	}
	return decoder.Decode(value)
}

// strict refuses a value that is not of the type of its key, in words for the person who gave it. It takes a whole
// float, such as YAML's 1e6, for a whole number, and a bare name for a summarizer.
func strict(from, to reflect.Value) (any, error) {
	value, t := from.Interface(), to.Type()
	ok := false
	switch {
	case to.Kind() == reflect.Int && isWhole(from):
		return int(from.Float()), nil
	case to.Kind() == reflect.Int:
		ok = from.CanInt()
	case to.Kind() == reflect.Float64:
		ok = from.CanInt() || isFinite(from)
	case from.Type() == t:
		ok = true
	case to.Kind() == reflect.Struct && from.Kind() == reflect.Map:
		return value, unknownKeys(from, t)
	case t == reflect.TypeFor[pipeline.SummarizerSpec]() && from.Kind() == reflect.String:
		return map[string]any{"model": value}, nil
	default:
		ok = from.Kind() == to.Kind()
	}
	if ok {
		return value, nil
	}
	wrong := fmt.Errorf("must be %s, not %s", describe(t), shown(value))
	if to.Kind() == reflect.String {
		wrong = fmt.Errorf("%w; put it in quotes", wrong)
	}
	return nil, wrong
}

func isFinite(v reflect.Value) bool {
	return v.CanFloat() && !math.IsNaN(v.Float()) && !math.IsInf(v.Float(), 0)
}

// isWhole reports whether v is a float that is a whole number and small enough to be exact.
func isWhole(v reflect.Value) bool {
	return isFinite(v) && v.Float() == math.Trunc(v.Float()) && math.Abs(v.Float()) < 1<<53
}

// unknownKeys refuses an object with a key that the type does not have.
func unknownKeys(object reflect.Value, t reflect.Type) error {
	members := membersOf(t)
	for _, key := range object.MapKeys() {
		if _, ok := members.of(fmt.Sprint(key)); !ok {
			return fmt.Errorf("has the unknown key %q; known here: %s", fmt.Sprint(key), members)
		}
	}
	return nil
}

// listEntry matches mapstructure's name of a value in a list: [1].window.
var listEntry = regexp.MustCompile(`^\[(\d+)\]\.?(.*)$`)

// problemOf says what is wrong with a value, from the first of mapstructure's errors.
func problemOf(err error) string {
	var at *mapstructure.DecodeError
	if !errors.As(err, &at) {
		return err.Error()
	}
	entry := listEntry.FindStringSubmatch(at.Name())
	if entry == nil {
		return at.Unwrap().Error()
	}
	n, _ := strconv.Atoi(entry[1]) // it matched digits
	if member := entry[2]; member != "" {
		return fmt.Sprintf("entry %d: %s %s", n+1, member, at.Unwrap())
	}
	return fmt.Sprintf("entry %d %s", n+1, at.Unwrap())
}

// describe names a type as a person would.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		if t.Elem() == reflect.TypeFor[pipeline.SummarizerSpec]() {
			return "a list of summarizers, such as self,anthropic/NAME"
		}
		return "a list of " + describe(t.Elem())
	case reflect.Map:
		return "names with a text each"
	case reflect.Struct:
		return "a name or an object"
	default:
		return "text"
	}
}

// shown returns a value as it was given, short enough for one line.
func shown(value any) string {
	const maxChars = 60
	var s string
	switch v := value.(type) {
	case string:
		s = strconv.Quote(v)
	case []any, map[string]any:
		if b, err := json.Marshal(v); err == nil {
			s = string(b)
			break
		}
		s = fmt.Sprint(v)
	default:
		s = fmt.Sprint(v)
	}
	if r := []rune(s); len(r) > maxChars {
		s = string(r[:maxChars]) + "…"
	}
	return s
}
