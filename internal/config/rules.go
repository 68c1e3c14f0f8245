package config

// What a single value must satisfy. Each function returns what is wrong and what would be right, "" when nothing is.

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"precis/internal/contract"
)

func when(wrong bool, problem string) string {
	if wrong {
		return problem
	}
	return ""
}

func unlessEmpty(rule func(string) string, value string) string {
	if value == "" {
		return ""
	}
	return rule(value)
}

func notEmpty(value string) string { return when(value == "", "must not be empty") }

func oneOf(known []string, value string) string {
	return when(!slices.Contains(known, value),
		fmt.Sprintf("must be one of %s, not %q", strings.Join(known, ", "), value))
}

func atLeast[N cmp.Ordered](least, value N) string {
	return when(value < least, fmt.Sprintf("must be at least %v, not %v", least, value))
}

func differsFrom(key, other, value string) string {
	return when(value == other, fmt.Sprintf("must be a queue of its own, not %q, which is that of %s", value, key))
}

func notBoth(fileKey, file, data string) string {
	return when(file != "" && data != "", fmt.Sprintf("is given as well as %s; give one of them", fileKey))
}

func absolutePath(value string) string {
	return when(!filepath.IsAbs(value), fmt.Sprintf("must be an absolute path, not %q", value))
}

func address(value string) string {
	_, port, err := net.SplitHostPort(value)
	if err == nil {
		if n, perr := strconv.Atoi(port); perr == nil && n >= 0 && n <= 65535 {
			return ""
		}
	}
	return fmt.Sprintf("must be HOST:PORT, such as 127.0.0.1:7233, not %q", value)
}

// databaseURL checks the form alone; the database's own client reads the rest. The problem never repeats the value,
// which holds a password.
func databaseURL(value string) string {
	if value == "" || strings.HasPrefix(value, "postgres://") || strings.HasPrefix(value, "postgresql://") {
		return ""
	}
	if key, _, ok := strings.Cut(value, "="); ok && !strings.Contains(key, ":") {
		return ""
	}
	return "must be postgres://USER:PASSWORD@HOST:PORT/DATABASE or host=… dbname=…"
}

// validVendorName is what fits before the slash in VENDOR/MODEL, and into the names of metrics and variables.
var validVendorName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]*$`)

func vendorName(name string) string {
	return when(!validVendorName.MatchString(name),
		"is not a vendor's name: use lower-case letters, digits, dots, hyphens and underscores")
}

func vendorType(value string) string {
	if value == "" {
		return "is missing: one of " + strings.Join(contract.Protocols, ", ")
	}
	return oneOf(contract.Protocols, value)
}

func baseURL(value string) string {
	if value == "" {
		return "is missing: where the API begins, such as http://127.0.0.1:8000/v1"
	}
	u, err := url.Parse(value)
	return when(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https",
		fmt.Sprintf("must be a URL that begins with http:// or https://, not %q", maskUserinfo(value)))
}

func modelID(name string) string {
	vendor, model, ok := strings.Cut(name, "/")
	return when(!ok || vendor == "" || model == "", "must be named VENDOR/MODEL")
}

// tokenRatio has the bounds that pipeline sets to a server's figure.
func tokenRatio(value float64) string {
	return when(value != 0 && !(value >= 0.5 && value <= 4),
		fmt.Sprintf("must be from 0.5 to 4, or 0 for what the table says, not %v", value))
}
