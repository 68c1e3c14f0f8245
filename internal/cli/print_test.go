package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"precis/internal/cli/fail"
	"precis/internal/config"
)

func TestMoment(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                          {},
		"90m":                       now.Add(-90 * time.Minute),
		"7d":                        now.AddDate(0, 0, -7),
		"2026-11-01":                time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		"2026-11-01 08:30":          time.Date(2026, 11, 1, 8, 30, 0, 0, time.UTC),
		"2026-11-01T08:30:00+01:00": time.Date(2026, 11, 1, 7, 30, 0, 0, time.UTC),
	} {
		got, err := moment("--since", text, now)
		if err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "7 d", "-3d", "2026-13-01", "d", "999999999999999d"} {
		if got, err := moment("--since", text, now); fail.Code(err) != fail.ExitUsage {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestReplaceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "out")
	if err := replaceFile(path, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if err := replaceFile(link, []byte("newer")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != 0o640 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "newer" {
		t.Errorf("the file holds %q, %v", text, err)
	}
	if err := replaceFile(filepath.Join(dir, "nosuch", "out"), nil); err == nil {
		t.Error("replaceFile wrote into a folder that does not exist")
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestSetup(t *testing.T) {
	t.Parallel()
	with := func(change func(*config.Config)) setup {
		c := config.Defaults()
		change(&c)
		s, err := setupOf(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	key := func(vendor, key string) func(*config.Config) {
		return func(c *config.Config) {
			v := c.Vendors[vendor]
			v.APIKey = key
			c.Vendors[vendor] = v
		}
	}
	plain := with(func(*config.Config) {})
	anthropic := with(key("anthropic", "secret-key-one"))
	other := with(key("anthropic", "secret-key-two"))
	elsewhere := with(func(c *config.Config) { c.DatabaseURL = "postgres://elsewhere/db" })
	tuned := with(func(c *config.Config) { c.Worker.Concurrency = 3 })

	if strings.Contains(anthropic.String(), "secret") {
		t.Errorf("the setup contains a key: %s", anthropic)
	}
	if parsed := parseSetup(anthropic.String()); parsed.String() != anthropic.String() {
		t.Errorf("read back as %s", parsed)
	}
	for _, test := range []struct {
		name    string
		mine    setup
		running setup
		fits    bool
	}{
		{"the same", anthropic, anthropic, true},
		{"one that can do more", plain, anthropic, true},
		{"one that lacks a vendor", anthropic, plain, false},
		{"one with another key", anthropic, other, false},
		{"one that works elsewhere", plain, elsewhere, false},
		{"one that is tuned in another way", plain, tuned, false},
		{"one of a release that wrote something else", plain, setup{}, false},
	} {
		if got := test.mine.fits(test.running.String()); got != test.fits {
			t.Errorf("%s: fits %v", test.name, got)
		}
	}
}
