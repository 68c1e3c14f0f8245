package api

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"precis/internal/config"
	"precis/internal/service"
	"precis/internal/store"
	"precis/internal/store/access"
	"precis/internal/testkit/scenario"
)

// stored is what the counters say that a tenant has stored, which must be what its rows have.
func (b *bench) stored(t *testing.T, tenant string) access.Stored {
	t.Helper()
	got, err := b.Store.Tenants.Stored(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	var rows access.Stored
	err = database(t, b).QueryRow(t.Context(), `SELECT
		coalesce(sum(coalesce(octet_length(c.system), 0) + coalesce(octet_length(c.tools), 0)
			+ coalesce(octet_length(c.envelope), 0) + coalesce(octet_length(c.settings), 0)
			+ coalesce(octet_length(c.metadata), 0)
			+ coalesce((SELECT sum(octet_length(native)) FROM messages m WHERE m.cid = c.cid), 0)
			+ coalesce((SELECT sum(octet_length(content)) FROM segments s WHERE s.cid = c.cid), 0)
			+ coalesce((SELECT sum(octet_length(value) + coalesce(octet_length(source), 0)) FROM enrichments e
				WHERE e.cid = c.cid), 0)), 0)::bigint,
		count(*) FILTER (WHERE content_deleted_at IS NULL)
		FROM conversations c WHERE tenant = $1`, tenant).Scan(&rows.Bytes, &rows.Conversations)
	if err != nil {
		t.Fatal(err)
	}
	if got != rows {
		t.Errorf("the counters of %s are %+v, its rows have %+v", tenant, got, rows)
	}
	return got
}

func (b *bench) deleteContent(t *testing.T, tenant, id string) {
	t.Helper()
	err := b.Store.Retention.DeleteContent(t.Context(), store.ConversationRef{Tenant: tenant, ID: id})
	if err != nil {
		t.Fatal(err)
	}
}

const newConversation = `{"id":%q,"format":"anthropic","model":{"vendor":"anthropic","name":"test-agent"}}`

func TestQuotaOfConversations(t *testing.T) {
	t.Parallel()
	b := newBench(t, options{config: func(c *config.Config) {
		c.Quotas = config.Quotas{Conversations: 3, Tenants: map[string]config.Quota{"big": {Conversations: 5}}}
	}})
	for tenant, quota := range map[string]int64{"small": 3, "big": 5} {
		b := b.with(b.newKey(tenant, false))
		var made atomic.Int64
		var group sync.WaitGroup
		for i := range 12 {
			group.Go(func() {
				r, err := b.try("POST", "/v1/conversations", fmt.Sprintf(newConversation, fmt.Sprint("c", i)))
				switch {
				case err != nil:
					t.Error(err)
				case r.status == http.StatusCreated:
					made.Add(1)
				default:
					r.fails(http.StatusForbidden, service.CodeQuota)
				}
			})
		}
		group.Wait()
		if got := b.stored(t, tenant); made.Load() != quota || got.Conversations != quota {
			t.Errorf("%s: %d conversations were made, %d are counted, the quota is %d", tenant, made.Load(),
				got.Conversations, quota)
		}
		// One that exists does not count again. Deleting the content of one makes room.
		list := b.send("GET", "/v1/conversations", "").is(200)
		id := list.get("conversations", 0, "id")
		b.send("POST", "/v1/conversations", fmt.Sprintf(newConversation, id)).is(200)
		b.deleteContent(t, tenant, id)
		b.send("POST", "/v1/conversations", fmt.Sprintf(newConversation, "another")).is(201)
		b.send("POST", "/v1/conversations", fmt.Sprintf(newConversation, "more")).fails(403, service.CodeQuota)
		b.stored(t, tenant)
	}
}

func TestQuotaOfStorage(t *testing.T) {
	t.Parallel()
	const quota = 200_000
	b := newBench(t, options{config: func(c *config.Config) { c.Quotas = config.Quotas{StorageBytes: quota} }})
	b.key = b.newKey("small", true)
	paths := make([]string, 4)
	for i := range paths {
		paths[i] = b.create(fmt.Sprint("c", i), `"metadata":{"k":"v"}`)
	}
	message := scenario.User(strings.Repeat("word ", 2000)) // 10 kB
	var group sync.WaitGroup
	var refused atomic.Int64
	for i := range 40 {
		group.Go(func() {
			r, err := b.try("POST", paths[i%len(paths)]+"/messages", `{"messages":`+list(message)+`}`)
			switch {
			case err != nil:
				t.Error(err)
			case r.status != http.StatusOK:
				refused.Add(1)
				r.fails(http.StatusForbidden, service.CodeQuota)
			}
		})
	}
	group.Wait()
	got := b.stored(t, "small")
	if got.Bytes > quota || got.Bytes < quota-int64(len(message)) || refused.Load() == 0 {
		t.Errorf("%d bytes are stored, %d requests were refused, the quota is %d", got.Bytes, refused.Load(), quota)
	}

	// Every way to store is refused, and what stores nothing works.
	large := quote(strings.Repeat("n", 12_000))
	c := paths[0]
	for _, r := range []reply{
		b.send("PUT", c+"/state/todo", `{"text":`+large+`}`),
		b.send("POST", c+"/segments", `{"text":`+large+`}`),
		b.send("PATCH", c, `{"system":`+large+`}`),
		b.send("PATCH", c, `{"metadata":{"m":`+large+`}}`),
		b.send("POST", c+"/sync", `{"messages":`+list(message, message, message, message, message, message, message,
			message, message, message, message, message, message, message)+`}`),
		b.send("POST", "/v1/conversations", `{"format":"anthropic","model":{"vendor":"a","name":"b"},"system":`+
			large+`}`),
	} {
		r.fails(http.StatusForbidden, service.CodeQuota)
	}
	agent := b.agent(t, "/mcp", b.key)
	if text, failed := use(t, agent, "add_note", arguments{
		"conversation": "c0", "text": strings.Repeat("n", 12_000),
	}); !failed || !strings.Contains(text, "quota_exceeded") {
		t.Errorf("add_note: %s", text)
	}
	b.send("GET", c+"/context", "").is(200)
	b.send("PATCH", c, `{"metadata":null,"settings":{"trigger":{"auto":false}}}`)
	b.send("DELETE", c+"/state/todo", "").is(204)
	b.stored(t, "small")
	b.deleteContent(t, "small", "c1")
	if after := b.stored(t, "small"); after.Bytes >= got.Bytes {
		t.Errorf("%d bytes are counted after a deletion, %d before", after.Bytes, got.Bytes)
	}
	b.add(c, message)
	b.stored(t, "small")
}
