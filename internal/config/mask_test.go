package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// secrets are values that no output may contain, each in a place of its own.
var secrets = map[string]string{
	"a vendor's key":      "sk-ant-very-secret-0123456789abcdef",
	"a short key":         "short-secret",
	"a header":            "Bearer header-secret",
	"a password in a URL": "hunter2-url",
	"Temporal's key":      "temporal-secret-0123456789abcdef",
	"a private key":       "-----BEGIN PRIVATE KEY----- private-secret",
	"userinfo":            "gateway-secret",
}

func secretEnviron() []string {
	return []string{
		"ANTHROPIC_API_KEY=" + secrets["a vendor's key"],
		"OPENAI_API_KEY=" + secrets["a short key"],
		`PRECIS_VENDORS__XAI__HEADERS={"Authorization": "` + secrets["a header"] + `"}`,
		"PRECIS_VENDORS__GOOGLE__BASE_URL=https://me:" + secrets["userinfo"] + "@gateway.example/v1",
		"PRECIS_DATABASE_URL=postgres://me:" + secrets["a password in a URL"] +
			"@db.example:5432/precis?sslmode=disable", "TEMPORAL_API_KEY=" + secrets["Temporal's key"],
		"TEMPORAL_TLS_CLIENT_CERT_DATA=public",
		"TEMPORAL_TLS_CLIENT_KEY_DATA=" + secrets["a private key"],
	}
}

func TestNoSecretIsShown(t *testing.T) {
	t.Parallel()
	c, origins, err := load(t, "", secretEnviron())
	if err != nil {
		t.Fatal(err)
	}
	asJSON, err := json.Marshal(c.Masked())
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{
		"Masked, as JSON": string(asJSON),
		"Masked, printed": fmt.Sprintf("%+v", c.Masked()),
		"Values":          fmt.Sprintf("%+v", Values(c, origins)),
	} {
		for what, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("%s shows %s", where, what)
			}
		}
	}
	if c.Vendors["anthropic"].APIKey != secrets["a vendor's key"] ||
		c.Vendors["xai"].Headers["Authorization"] != secrets["a header"] {
		t.Error("masking changed the configuration itself")
	}
}

func TestMaskedKeepsSecretsRecognizable(t *testing.T) {
	t.Parallel()
	c, origins, err := load(t, "", secretEnviron())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Value{
		"vendors.anthropic.api_key": {Value: "****cdef", From: Origin{Source: SourceEnv, Name: "ANTHROPIC_API_KEY"}},
		"vendors.openai.api_key":    {Value: "****", From: Origin{Source: SourceEnv, Name: "OPENAI_API_KEY"}},
		"vendors.google.api_key":    {Value: "", From: Origin{Source: SourceDefault}},
		"database_url": {
			Value: "postgres://me:****@db.example:5432/precis?sslmode=disable",
			From:  Origin{Source: SourceEnv, Name: "PRECIS_DATABASE_URL"},
		},
		"settings.summarizers":      {Value: "self", From: Origin{Source: SourceDefault}},
		"settings.digest":           {Value: "when_needed", From: Origin{Source: SourceDefault}},
		"settings.trigger.fraction": {Value: "0.9", From: Origin{Source: SourceDefault}},
	}
	for _, v := range Values(c, origins) {
		w, ok := want[v.Key]
		if !ok {
			continue
		}
		delete(want, v.Key)
		if w.Key = v.Key; v != w {
			t.Errorf("got %+v, want %+v", v, w)
		}
	}
	for key := range want {
		t.Errorf("%s is not listed", key)
	}
}

func TestErrorsHoldNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-secret-value"
	for name, tt := range map[string]struct {
		yaml    string
		environ []string
		args    []string
	}{
		"key as a list":               {yaml: "vendors: {openai: {api_key: [" + secret + "]}}"},
		"key in place of the section": {yaml: "vendors: {openai: " + secret + "}"},
		"the same in a variable":      {environ: []string{"PRECIS_VENDORS__OPENAI=" + secret}},
		"headers as text":             {environ: []string{"PRECIS_VENDORS__OPENAI__HEADERS=Authorization: " + secret}},
		"header that is a list":       {yaml: "vendors: {openai: {headers: {a: [" + secret + "]}}}"},
		"database URL":                {environ: []string{"PRECIS_DATABASE_URL=mysql://me:" + secret + "@h/d"}},
		"base URL":                    {environ: []string{"OPENAI_BASE_URL=ftp://me:" + secret + "@h/d"}},
		"on the command line":         {args: []string{"--set", "vendors.openai.api_key=" + secret}},
		"in a section there":          {args: []string{"--set", "vendors={openai: {api_key: " + secret + "}}"}},
		"without an equals sign":      {args: []string{"--set", "vendors.openai.api_key"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, err := load(t, tt.yaml, tt.environ, tt.args...)
			if err == nil {
				t.Fatal("no error")
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the secret: %s", err)
			}
		})
	}
}

func TestDatabasePasswordsAreMaskedInEveryForm(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                           "",
		"postgres:///precis":         "postgres:///precis",
		"postgres://me@h/d":          "postgres://me@h/d",
		"postgres://me:pw@h/d":       "postgres://me:****@h/d",
		"postgres://me:p%40w@h/d":    "postgres://me:****@h/d",
		"postgres://me:p@w@h/d":      "postgres://me:****@h/d",
		"postgres://me:p%w@h/d":      "postgres://****@h/d",
		"postgres://h/d?password=pw": "postgres://h/d?password=****",
		"postgres://h/d?sslpassword=pw&sslmode=require": "postgres://h/d?sslpassword=****&sslmode=require",
		"host=h password=pw dbname=d":                   "host=h password=**** dbname=d",
		`host=h password = 'p w\'x' dbname=d`:           "host=h password = **** dbname=d",
		`password=p\ w dbname=d`:                        "password=**** dbname=d",
	} {
		if got := maskDatabaseURL(in); got != want {
			t.Errorf("maskDatabaseURL(%q) = %q, want %q", in, got, want)
		}
	}
}
