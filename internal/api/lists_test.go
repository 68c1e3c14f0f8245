package api

import (
	"strings"
	"testing"
)

// Lists leave out what can be large: it is read one by one.
func TestListsLeaveOutWhatIsLarge(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	large := strings.Repeat("LARGE ", 10_000)
	c := b.create("c", `"system":`+quote(large)+`,"tools":[{"name":"t","description":`+quote(large)+
		`}],"settings":{"trigger":{"auto":false}},"metadata":{"k":"v"}`)
	b.add(c, `{"role":"user","content":`+quote(large)+`}`)
	b.send("PUT", c+"/state/todo", `{"text":`+quote(large)+`}`).is(200)
	b.send("POST", c+"/compactions", `{"focus":"the end","wait_seconds":0}`)
	for _, path := range []string{"/v1/conversations", "/v1/runs", c + "/compactions", c + "/segments", "/v1/usage"} {
		r := b.send("GET", path, "").is(200)
		if strings.Contains(string(r.body), "LARGE") || len(r.body) > 8<<10 {
			t.Errorf("%s has %d bytes: %.500s", path, len(r.body), r.body)
		}
	}
	list := b.send("GET", "/v1/conversations", "").is(200)
	if list.get("conversations", 0, "metadata", "k") != "v" || strings.Contains(string(list.body), `"settings"`) {
		t.Errorf("the list is %s", list.body)
	}
	if one := b.send("GET", c, "").is(200); !strings.Contains(string(one.body), "LARGE") ||
		!strings.Contains(string(one.body), `"settings"`) {
		t.Errorf("the conversation is %.500s", one.body)
	}
}

// A conversation has a maximum of keys of live state. One that is removed makes room.
func TestKeysOfLiveStateAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{})
	c := b.create("c", "")
	key := func(i int) string { return c + "/state/x-" + strings.Repeat("k", i+1) }
	for i := range 62 {
		b.send("PUT", key(i), `{"text":"a"}`).is(200)
	}
	b.send("PUT", c+"/state/todo", `{"text":"a"}`).is(200)
	b.send("PUT", c+"/state/plan", `{"text":"a"}`).is(200)
	b.send("PUT", c+"/state/pins", `{"text":"a"}`).fails(413, "too_large")
	b.send("PUT", c+"/state/todo", `{"text":"b"}`).is(200)
	b.send("DELETE", c+"/state/plan", "").is(204)
	b.send("PUT", c+"/state/pins", `{"text":"a"}`).is(200)
}
