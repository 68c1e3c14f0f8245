package config

import (
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"precis/pipeline"
)

const mask = "****"

// Masked gives a copy that can be shown: secrets are replaced, their last four chars kept where the secret
// is long enough for that to tell which one it is and nothing more.
func (c Config) Masked() Config {
	c.DatabaseURL = maskDatabaseURL(c.DatabaseURL)
	c.Temporal.APIKey = maskSecret(c.Temporal.APIKey)
	c.Temporal.TLS.KeyData = maskWhole(c.Temporal.TLS.KeyData)
	c.Vendors = maps.Clone(c.Vendors)
	for name, v := range c.Vendors {
		v.APIKey = maskSecret(v.APIKey)
		v.BaseURL = maskUserinfo(v.BaseURL)
		v.Headers = maps.Clone(v.Headers)
		for header, value := range v.Headers {
			v.Headers[header] = maskWhole(value)
		}
		c.Vendors[name] = v
	}
	return c
}

func maskSecret(s string) string {
	if r := []rune(s); len(r) >= 20 {
		return mask + string(r[len(r)-4:])
	}
	return maskWhole(s)
}

func maskWhole(s string) string {
	if s == "" {
		return ""
	}
	return mask
}

// passwordParameter is the password in a connection string of the form "host=… password=…", with its quoting,
// and in the query of a URL.
var passwordParameter = regexp.MustCompile(`(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|(?:[^\s&'\\]|\\.)+)`)

func maskDatabaseURL(s string) string {
	return passwordParameter.ReplaceAllString(maskUserinfo(s), "${1}"+mask)
}

// userinfo is what stands between the scheme and the last @ before the path, for a URL that does not parse.
var userinfo = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*://)[^/?#]*@`)

func maskUserinfo(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return userinfo.ReplaceAllString(s, "${1}"+mask+"@")
	}
	if u.User == nil {
		return s
	}
	if _, has := u.User.Password(); !has {
		return s
	}
	// Built by hand: net/url would escape the stars.
	return userinfo.ReplaceAllString(s, "${1}"+url.User(u.User.Username()).String()+":"+mask+"@")
}

// Value is one key of the effective configuration, ready to be shown.
type Value struct {
	Key string `json:"key"`
	// Value as text; secrets masked.
	Value string `json:"value"`
	From  Origin `json:"from"`
}

// Values lists every key with its value, secrets masked, and where it came from, in the order of the table.
func Values(c Config, origins Origins) []Value {
	var out []Value
	for _, l := range leaves(reflect.ValueOf(c.Masked()), nil) {
		key := dotted(l.path)
		out = append(out, Value{Key: key, Value: format(l.value), From: origins.Of(key)})
	}
	return out
}

// format writes a value as a variable or --set would take it.
func format(v reflect.Value) string {
	switch value := v.Interface().(type) {
	case []pipeline.SummarizerSpec:
		var names []string
		for _, s := range value {
			if s.ContextWindow != 0 || s.MaxOutput != 0 {
				return compact(value)
			}
			names = append(names, s.Model)
		}
		return strings.Join(names, ",")
	case string:
		return value
	}
	switch v.Kind() {
	case reflect.String:
		return v.String()
	case reflect.Map:
		if v.Len() == 0 {
			return ""
		}
	}
	return compact(v.Interface())
}

func compact(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}
