package memory_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"precis/internal/memory"
	"precis/internal/store"
)

// What the memory of a conversation of 10 MB costs, the first time and then:
//
//	go test ./internal/memory -run - -bench . -benchtime 5x
func BenchmarkMemory(b *testing.B) {
	m, url := open(b)
	ref := create(b, m, "bench")
	words := strings.Fields("the agent reads internal/store/segment.go and runs go test ./... which fails with " +
		"exit status 1 at line 4711 since the index of 2048 entries was not built")
	var natives []string
	for i := range 2500 {
		var text strings.Builder
		for j := 0; text.Len() < 8000; j++ {
			fmt.Fprintf(&text, "%s %s_%d ", words[(i*31+j*7)%len(words)], words[(i+j)%len(words)], (i*7919+j)%50_000)
		}
		natives = append(natives, said("user", fmt.Sprint("request ", i)), said("assistant", text.String()[:4000]))
		if len(natives) == 1000 || i == 2499 {
			add(b, m, ref, natives...)
			natives = nil
		}
	}
	compacted(b, m, ref, 4998)
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	again := func(b *testing.B, sql string) {
		b.StopTimer()
		if _, err := pool.Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.Run("segments/first", func(b *testing.B) {
		for range b.N {
			again(b, `DELETE FROM segments`)
			if _, err := m.Entries(b.Context(), ref); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("segments/then", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.Entries(b.Context(), ref); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("segment/read", func(b *testing.B) {
		for b.Loop() {
			if _, _, err := m.Read(b.Context(), ref, "segment_0100.md"); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("page/read", func(b *testing.B) {
		for b.Loop() {
			if _, err := m.ReadPage(b.Context(), ref, memory.Place{Seq: 2500}, 0, 0); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("search/first", func(b *testing.B) {
		for range b.N {
			again(b, `DELETE FROM search_texts; UPDATE conversations SET search_seq = 0`)
			find(b, m, ref, "fails_4711")
		}
	})
	for name, query := range map[string]string{
		"word": "fails_4711", "frequent": "segment.go", "rare": "request 2100",
		"inside": "ails_4711", "absent": "qqqq",
	} {
		b.Run("search/"+name, func(b *testing.B) {
			for b.Loop() {
				find(b, m, ref, query)
			}
		})
	}
}

func find(b *testing.B, m memory.Memory, ref store.ConversationRef, query string) {
	b.Helper()
	if _, err := m.Search(b.Context(), ref, query, 0, ""); err != nil {
		b.Fatal(err)
	}
}
