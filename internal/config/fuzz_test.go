package config

import (
	"errors"
	"path/filepath"
	"reflect"
	"testing"
)

// FuzzLoad reads any file and any variable. A failure is an *Error; a configuration that loads can be shown, and loads
// again from what is shown.
func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		exampleFile, "", "null", "[]", "settings: {summarizers: [self, {model: a/b}]}", "a: &a [*a]",
		"vendors: {x: {<<: {type: openai}}}", "settings:\n  trigger: {turns: 1e300}\n", "prices: {? [a, b] : 1}",
		"dir: \"\\u0000\"", "1: 2", "temporal: !!binary aGk=",
	} {
		f.Add(s, "self,anthropic/x")
	}
	f.Add("", `[{"model":"openai/y","max_output":1}]`)
	f.Fuzz(func(t *testing.T, file, summarizers string) {
		path := filepath.Join(t.TempDir(), FileName)
		write(t, path, file)
		c, origins, err := Load(LoadOptions{
			File:    path,
			Environ: []string{"PRECIS_SETTINGS__SUMMARIZERS=" + summarizers},
		})
		if err != nil {
			var fault *Error
			if !errors.As(err, &fault) {
				t.Fatalf("%T: %s", err, err)
			}
			return
		}
		for _, v := range Values(c, origins) {
			if v.Key != "settings.summarizers" {
				continue
			}
			again, _, err := Load(LoadOptions{File: path, Environ: []string{"PRECIS_SETTINGS__SUMMARIZERS=" + v.Value}})
			if err != nil {
				t.Fatalf("%s = %s does not load: %s", v.Key, v.Value, err)
			}
			if got := format(valueOf(again, v.Key)); got != v.Value {
				t.Fatalf("%s: %s became %s", v.Key, v.Value, got)
			}
		}
	})
}

func valueOf(c Config, key string) reflect.Value {
	for _, l := range leaves(reflect.ValueOf(c), nil) {
		if dotted(l.path) == key {
			return l.value
		}
	}
	return reflect.Value{}
}
