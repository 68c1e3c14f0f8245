package config

import (
	"maps"
	"net/url"
	"regexp"
	"strings"
)

const mask = "****"

// Masked returns a copy that can be shown. Secrets are replaced; of a long one the last four chars are kept, enough to
// recognize it and too few to guess it.
func (c Config) Masked() Config {
	c.DatabaseURL = maskDatabaseURL(c.DatabaseURL)
	c.Temporal.APIKey = maskSecret(c.Temporal.APIKey)
	c.Temporal.TLS.KeyData = maskWhole(c.Temporal.TLS.KeyData)
	if strings.Contains(c.Audit.SigningKey, "-----BEGIN") {
		c.Audit.SigningKey = mask // the path of a file can be shown
	}
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

// passwordParameter matches the password in a connection string of the form "host=… password=…", with its quoting, and
// in the query of a URL.
var passwordParameter = regexp.MustCompile(`(?i)\b((?:ssl)?password\s*=\s*)('(?:[^'\\]|\\.)*'|(?:[^\s&'\\]|\\.)+)`)

func maskDatabaseURL(s string) string {
	return passwordParameter.ReplaceAllString(maskUserinfo(s), "${1}"+mask)
}

// userinfo matches everything between the scheme and the last @ before the path, for a URL that does not parse.
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
