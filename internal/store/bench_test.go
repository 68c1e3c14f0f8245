package store_test

import (
	"fmt"
	"testing"

	"precis/internal/store"
	"precis/internal/store/changes"
	"precis/internal/store/contexts"
	"precis/internal/store/conversations"
	"precis/internal/store/markers"
	"precis/pipeline"
)

// The times of both must not grow with the history:
//
//	go test ./internal/store -run - -bench . -benchtime 300x

func BenchmarkAppend(b *testing.B) {
	s, _ := newStore(b)
	for _, history := range []int{0, 1_000, 100_000} {
		ref := grown(b, s, history)
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Changes.Append(b.Context(), ref,
					[]conversations.NewMessage{message(pipeline.RoleUser, "one more")},
					changes.AppendOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkContext(b *testing.B) {
	s, _ := newStore(b)
	for _, history := range []int{100, 1_000, 100_000} {
		ref := grown(b, s, history)
		if _, err := s.Markers.Report(b.Context(), ref, markers.Reported{
			Origin: markers.OriginAgent, CoversTo: int64(history - 50), Carried: []int64{1}, Summary: []byte("SUM"),
		}); err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			for b.Loop() {
				v, err := s.Contexts.Read(b.Context(), ref, contexts.Options{})
				if err != nil || len(v.Tail) != 50 {
					b.Fatalf("%d in the tail, %v", len(v.Tail), err)
				}
			}
		})
	}
}

func grown(b *testing.B, s *store.Store, messages int) store.ConversationRef {
	b.Helper()
	ref := newConversation(b, s, fmt.Sprint("of ", messages))
	_, err := s.Changes.AppendStream(b.Context(), ref, func(yield func(conversations.NewMessage, error) bool) {
		for i := range messages {
			if !yield(message(pipeline.RoleUser, fmt.Sprint("message ", i)), nil) {
				return
			}
		}
	})
	if err != nil {
		b.Fatal(err)
	}
	return ref
}
