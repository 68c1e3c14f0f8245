package api

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/access"
	"precis/internal/testkit/scenario"
)

// newScopedKey makes a key of the default tenant.
func (b *bench) newScopedKey(scope access.Scope, expires time.Time) (id, secret string) {
	b.t.Helper()
	k, secret, err := b.Store.Keys.CreateKey(b.t.Context(), access.NewKey{
		Tenant: store.DefaultTenant, Name: "test", Scope: scope, Expires: expires,
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return k.ID, secret
}

// Every operation of the document that needs a key has a scope in the table, which has no other entry. A key is refused
// exactly where its scope is not enough, before anything else is looked at, with the scope that is needed.
func TestScopes(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	secrets := map[access.Scope]string{}
	for _, scope := range access.Scopes {
		_, secrets[scope] = b.newScopedKey(scope, time.Time{})
	}
	ids := map[string]string{
		"{id}": "none", "{run}": "none", "{reply}": "none", "{key}": "todo", "{name}": "none",
	}
	known := maps.Clone(scopes)
	for path, operations := range documentedPaths(b) {
		for method, about := range operations {
			op, _ := about.(map[string]any)
			name, _ := op["operationId"].(string)
			if security, public := op["security"].([]any); public && len(security) == 0 {
				continue
			}
			needed, ok := scopes[name]
			if !ok {
				t.Errorf("%s %s (%s) has no scope", method, path, name)
			}
			delete(known, name)
			if text, _ := op["description"].(string); !strings.Contains(text, "`"+string(needed)+"`") {
				t.Errorf("%s does not document its scope: %s", name, text)
			}
			method = strings.ToUpper(method)
			full := pathParameter.ReplaceAllStringFunc(path, func(name string) string { return ids[name] })
			for scope, secret := range secrets {
				body := ""
				if method != http.MethodGet {
					body = `{}`
				}
				if name == "compact-once" || name == "create-conversation" {
					body = `[`
				}
				r := b.with(secret).send(method, full+query(path), body)
				if !scope.Includes(needed) {
					if p := r.fails(403, service.CodeForbidden); !strings.Contains(p.Detail, string(needed)) {
						t.Errorf("%s with %s: %s", name, scope, p.Detail)
					}
				} else if r.status == http.StatusForbidden || r.status == http.StatusUnauthorized {
					t.Errorf("%s with %s: %d %s", name, scope, r.status, r.body)
				}
			}
		}
	}
	if len(known) > 0 {
		t.Errorf("scopes of operations that do not exist: %v", slices.Sorted(maps.Keys(known)))
	}
}

// Over MCP a key that may read reads, and leaves no note.
func TestScopesOfTools(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	_, writes := b.newScopedKey(access.ScopeWrite, time.Time{})
	_, reads := b.newScopedKey(access.ScopeRead, time.Time{})
	b.key = writes
	c := b.create("c", "")
	b.add(c, scenario.User("hello"))
	for key, may := range map[string]bool{reads: false, writes: true} {
		session := b.agent(t, c+"/mcp", key)
		if text, failed := use(t, session, "read_messages", arguments{"from": 1}); failed {
			t.Errorf("reading fails: %s", text)
		}
		text, failed := use(t, session, "add_note", arguments{"text": "a note"})
		if failed == may || !may && !strings.Contains(text, `needs "write"`) {
			t.Errorf("a note: failed %v: %s", failed, text)
		}
	}
}

// A key stops working when it expires, with what is open then.
func TestExpiry(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	_, other := b.newScopedKey(access.ScopeWrite, time.Time{})
	c := b.with(other).create("c", "")
	expires := time.Now().Add(2 * time.Second)
	id, secret := b.newScopedKey(access.ScopeRead, expires)
	b.key = secret
	b.send("GET", c, "").is(200)
	f := b.follow(c + "/events")
	select {
	case <-f.ended:
		if time.Now().Before(expires.Add(-100 * time.Millisecond)) {
			t.Error("the stream ended early")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the stream outlives its key")
	}
	b.send("GET", c, "").fails(401, codeUnauthorized)
	for _, k := range must(b.Store.Keys.List(t.Context(), store.DefaultTenant)) {
		if k.ID == id && (k.Scope != access.ScopeRead || k.LastUsed.IsZero() ||
			k.Expires.Sub(expires).Abs() > time.Second) {
			t.Errorf("listed as %+v", k)
		}
	}
	past := access.NewKey{Tenant: "default", Expires: time.Now().Add(-time.Hour)}
	if _, _, err := b.Store.Keys.CreateKey(t.Context(), past); err == nil {
		t.Error("a key was made that has expired already")
	}
	for _, name := range []string{"a\u202eb", " a", "a\x1bb", ".."} {
		if _, _, err := b.Store.Keys.Create(t.Context(), "default", name, false); err == nil {
			t.Errorf("a key may be called %q", name)
		}
	}
}

func TestParseScope(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]access.Scope{
		"read": access.ScopeRead, "write": access.ScopeWrite, "read,write": access.ScopeWrite,
		"admin, read": access.ScopeAdmin, "": "", "root": "", "read,,": "", "READ": "",
	} {
		got, err := access.ParseScope(list)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", list, got, err)
		}
	}
	for _, have := range append(slices.Clone(access.Scopes), "", "root") {
		for _, needed := range append(slices.Clone(access.Scopes), "", "root") {
			at, least := slices.Index(access.Scopes, have), slices.Index(access.Scopes, needed)
			if want := least >= 0 && at >= least; have.Includes(needed) != want {
				t.Errorf("%q includes %q: %v", have, needed, !want)
			}
		}
	}
}
