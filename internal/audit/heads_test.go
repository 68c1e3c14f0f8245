package audit_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"precis/internal/audit"
	"precis/internal/store"
	sealed "precis/internal/store/evidence"
	"precis/internal/store/seals"
	"precis/internal/testkit/scenario"
	"precis/internal/testkit/vendorserver"
)

// signing opens the database of a system with a pair of keys.
func signing(t *testing.T, s *scenario.System, signer ed25519.PrivateKey, verifier ed25519.PublicKey) *store.Store {
	t.Helper()
	st, err := store.Open(t.Context(), s.Config.DatabaseURL, store.Options{SigningKey: signer, VerifyKey: verifier})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(st.Close)
	return st
}

func keyOf(t *testing.T, seed string) (ed25519.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	sum := sha256.Sum256([]byte(seed))
	private := ed25519.NewKeyFromSeed(sum[:])
	public, ok := private.Public().(ed25519.PublicKey)
	if !ok {
		t.Fatal("no public key")
	}
	return public, private
}

// rewrite changes a piece of live state, and recomputes every hash over it, as somebody can who may write to the
// database and knows the source.
func rewrite(t *testing.T, db *pgxpool.Pool, ref store.ConversationRef, value string) {
	t.Helper()
	ctx := t.Context()
	tx, err := db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`SET LOCAL session_replication_role = replica`)
	rows, err := tx.Query(ctx, `SELECT n, kind, subject, sha256, chain, record, s.created_at FROM seals s
		JOIN conversations USING (cid) WHERE id = $1 ORDER BY n`, ref.ID)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, seals.Scan)
	if err != nil {
		t.Fatal(err)
	}
	var before store.Hash
	for _, s := range list {
		var r seals.Record
		if err := json.Unmarshal(s.Record, &r); err != nil {
			t.Fatal(err)
		}
		if s.Kind == seals.LiveState {
			sum := sha256.Sum256([]byte(value))
			is := "sha256:" + hex.EncodeToString(sum[:])
			r.Rows[0].Values["value"] = &is
			exec(`UPDATE enrichments SET value = $2 WHERE cid = (SELECT cid FROM conversations WHERE id = $1)`, ref.ID,
				[]byte(value))
		}
		record, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		sum := store.Hash(sha256.Sum256(record))
		before = seals.Chain(before, s.N, s.Kind, s.Subject, sum)
		exec(`UPDATE seals SET sha256 = $3, chain = $4, record = $5 WHERE n = $2
			AND cid = (SELECT cid FROM conversations WHERE id = $1)`, ref.ID, s.N, sum[:], before[:], record)
	}
	exec(`UPDATE conversations SET seal_chain = $2 WHERE id = $1`, ref.ID, before[:])
	if err := tx.Commit(ctx); err != nil {
		t.Fatal(err)
	}
}

// published returns the heads of a store as a file.
func published(t *testing.T, st *store.Store, key ed25519.PrivateKey, sign bool) []byte {
	t.Helper()
	var file bytes.Buffer
	err := audit.Publish{Key: key, SignSeals: sign}.Heads(t.Context(), st, func(h audit.Head) error {
		line, err := json.Marshal(h)
		file.Write(append(line, '\n'))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func failuresOf(t *testing.T, st *store.Store, ref store.ConversationRef) string {
	t.Helper()
	swept, err := audit.VerifyAll(t.Context(), st,
		audit.Sweep{Filter: sealed.Filter{Tenant: ref.Tenant, Conversation: ref.ID}})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range swept.Failures {
		b.WriteString(string(f.State) + " " + f.Check + ": " + f.Detail + "\n")
	}
	return b.String()
}

// Whoever can write to the database can rewrite a record with all its hashes. Without a key nothing in the database
// shows that; a signature shows it, and so do heads that were published before.
func TestRewrittenHashesAreFound(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{})
	db := database(t, s)
	public, private := keyOf(t, "ours")
	other, _ := keyOf(t, "another")
	signed := signing(t, s, private, public)
	ref := s.Create(scenario.Conversation{Messages: scenario.Turns(1, 20)})
	if got := failuresOf(t, signed, ref); !strings.Contains(got, "missing records: seal_signatures") {
		t.Errorf("a conversation that was sealed without a key: %q", got)
	}
	published(t, signed, private, true) // signs what is there
	if _, err := signed.LiveState.Set(t.Context(), ref, "todo", []byte("what it was")); err != nil {
		t.Fatal(err)
	}
	heads := published(t, signed, private, false)
	if got := failuresOf(t, signed, ref); got != "" {
		t.Fatalf("nothing was changed: %s", got)
	}
	if got := failuresOf(t, signing(t, s, nil, other), ref); !strings.Contains(got, "tampered records") {
		t.Errorf("the signatures of another key: %q", got)
	}
	check := func(file []byte, key ed25519.PublicKey, failed int) audit.HeadsReport {
		t.Helper()
		r, err := audit.VerifyHeads(t.Context(), s.Store, key, bytes.NewReader(file))
		if err != nil || r.Failed != failed || r.Heads != 1 {
			t.Fatalf("%+v, %v", r, err)
		}
		return r
	}
	check(heads, public, 0)
	check(heads, nil, 0)
	check(bytes.Replace(heads, []byte(`"messages":5`), []byte(`"messages":4`), 1), public, 1)
	if _, err := signed.LiveState.Set(t.Context(), ref, "plan", []byte("more")); err != nil {
		t.Fatal(err)
	}
	check(heads, public, 0) // the database extends the heads

	rewrite(t, db, ref, "what it never was")
	if got := failuresOf(t, s.Store, ref); got != "" {
		t.Fatalf("all hashes were recomputed, and without a key it finds %s", got)
	}
	if got := failuresOf(t, signed, ref); !strings.Contains(got, "tampered records: seal_signatures") {
		t.Errorf("with the key it finds %q", got)
	}
	if r := check(heads, nil, 1); r.Failures[0].State != audit.Tampered {
		t.Errorf("the heads find %+v", r)
	}
	if _, err := db.Exec(t.Context(), `DELETE FROM seal_signatures`); err != nil {
		t.Fatal(err)
	}
	if got := failuresOf(t, signed, ref); !strings.Contains(got, "missing records: seal_signatures") {
		t.Errorf("without signatures it finds %q", got)
	}
}

// A deletion leaves a tombstone, which a verification of all conversations counts, and heads accept. A conversation
// that vanished without one is found by the heads.
func TestTombstones(t *testing.T) {
	t.Parallel()
	s := scenario.New(t, vendorserver.Script{})
	db := database(t, s)
	deleted := s.Create(scenario.Conversation{Messages: scenario.Turns(1, 20)})
	vanished := s.Create(scenario.Conversation{Messages: scenario.Turns(1, 20)})
	heads := published(t, s.Store, nil, false)
	if err := s.Store.Retention.DeleteContent(t.Context(), deleted); err != nil {
		t.Fatal(err)
	}
	swept, err := audit.VerifyAll(t.Context(), s.Store, audit.Sweep{})
	if err != nil || swept.Deleted != 1 || swept.Failed != 0 || len(swept.NotCovered) == 0 ||
		swept.DeletedConversations[0].Conversation != deleted.ID || swept.DeletedConversations[0].Messages != 5 {
		t.Fatalf("%+v, %v", swept, err)
	}
	report, err := audit.VerifyHeads(t.Context(), s.Store, nil, bytes.NewReader(heads))
	if err != nil || report.Heads != 2 || report.Deleted != 1 || report.Failed != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	for column, change := range map[string]string{
		"head_seq": "head_seq + 1", "tokens_sum": "tokens_sum + 1", "chars_sum": "chars_sum + 1",
		"turns_sum": "turns_sum + 1", "head_chain": "sha256(head_chain)",
		"content_deleted_at": "content_deleted_at + interval '1 hour'",
	} {
		var was any
		if err := db.QueryRow(t.Context(), `SELECT `+column+` FROM conversations WHERE id = $1`, deleted.ID).
			Scan(&was); err != nil {
			t.Fatal(err)
		}
		set := func(expression string, args ...any) {
			t.Helper()
			if _, err := db.Exec(t.Context(), `UPDATE conversations SET `+column+` = `+expression+` WHERE id = $1`,
				append([]any{deleted.ID}, args...)...); err != nil {
				t.Fatal(err)
			}
		}
		set(change)
		if got := failuresOf(t, s.Store, deleted); !strings.Contains(got, column) {
			t.Errorf("%s of a deleted conversation was changed, and it finds %q", column, got)
		}
		set("$2", was)
	}
	for _, table := range []string{"messages", "seals", "conversations"} {
		if _, err := db.Exec(t.Context(),
			`SET session_replication_role = replica; DELETE FROM `+table+` WHERE cid =
			(SELECT cid FROM conversations WHERE id = '`+vanished.ID+`'); SET session_replication_role = origin`); err != nil {
			t.Fatal(err)
		}
	}
	report, err = audit.VerifyHeads(t.Context(), s.Store, nil, bytes.NewReader(heads))
	if err != nil || report.Failed != 1 || report.Failures[0].Conversation != vanished.ID ||
		!strings.Contains(report.Failures[0].Detail, "without a tombstone") {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestVerifyHeadsRefuses(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"", "\n", "{}", "no JSON", `{"conversation":"c","seals":0}`, strings.Repeat("x", 1<<17),
	} {
		if _, err := audit.VerifyHeads(t.Context(), nil, nil, strings.NewReader(file)); !errors.Is(err,
			store.ErrInvalid) {
			t.Errorf("%.20q: %v", file, err)
		}
	}
}
