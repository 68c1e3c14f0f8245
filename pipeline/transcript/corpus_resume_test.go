package transcript_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"precis/internal/testkit/corpus"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
	"precis/pipeline/transcript/rawjson"
)

// chain walks a session as Claude Code does when it resumes one: from the last record that is a message, along
// parentUuid. It returns the uuids on the way.
func chain(t *testing.T, file []byte) (way map[string]bool, boundary bool) {
	t.Helper()
	type entry struct {
		UUID, ParentUUID, Type, Subtype string
	}
	all := map[string]entry{}
	last := ""
	for line := range bytes.SplitSeq(bytes.TrimSpace(file), []byte{'\n'}) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.UUID == "" {
			continue
		}
		if _, ok := all[e.UUID]; ok {
			t.Errorf("uuid %s occurs twice", e.UUID)
		}
		all[e.UUID] = e
		if e.Type == "user" || e.Type == "assistant" {
			last = e.UUID
		}
	}
	way = map[string]bool{}
	for at := last; at != ""; at = all[at].ParentUUID {
		if way[at] {
			t.Fatalf("the chain runs in a circle at %s", at)
		}
		e, ok := all[at]
		if !ok {
			t.Fatalf("the chain leads to %s, which is not in the file", at)
		}
		way[at] = true
		boundary = boundary || e.Subtype == "compact_boundary"
	}
	return way, boundary
}

// The last part of every session of the collection is written behind a summary. Claude Code would then resume the
// summary and the messages that were on its chain before, with the same bytes.
func TestWrittenSessionsCanBeResumed(t *testing.T) {
	t.Parallel()
	for _, f := range corpus.Files(t, "claude-code-jsonl") {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			data := f.Read(t)
			conv := readFile(t, f.Path).Conversations[0]
			before := leafChain(t, data)
			for _, share := range []int{0, 1, 3, 9, 10} {
				tail := conv.Messages[len(conv.Messages)*(10-share)/10:]
				made := pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSummary, Text: "S"}
				items := append([]pipeline.ContextItem{{Made: &made}}, contextOf(tail)...)
				var b bytes.Buffer
				if _, err := convert.WriteFile(&b, transcript.ClaudeCode,
					transcript.Output{Meta: conv.Meta, Items: items}); err != nil {
					t.Fatal(err)
				}
				way, boundary := chain(t, b.Bytes())
				if !boundary {
					t.Errorf("%d/10: the boundary is not on the chain", share)
				}
				back, err := transcript.Read(&b, transcript.Options{})
				if err != nil {
					t.Fatal(err)
				}
				got := back.Conversations[0]
				if len(got.Compactions) != 1 || got.Compactions[0].Before != 0 || !way[got.Compactions[0].Summary.ID] {
					t.Fatalf("%d/10: the summary is not where it should be: %+v", share, got.Compactions)
				}
				if got.Sidechain != conv.Sidechain || got.ID != conv.ID {
					t.Errorf("%d/10: it is of session %q", share, got.ID)
				}
				if len(got.Messages) != len(tail) {
					t.Fatalf("%d/10: %d messages of %d", share, len(got.Messages), len(tail))
				}
				changed := 0
				for i, m := range got.Messages {
					if !bytes.Equal(m.Native, tail[i].Native) {
						changed++
						if a, b := unlinked(t, m.Native), unlinked(t, tail[i].Native); a != b {
							t.Errorf("%d/10: message %d was changed", share, i)
						}
					}
					if before[m.ID] && !way[m.ID] {
						t.Errorf("%d/10: message %d was on the chain and is not now", share, i)
					}
				}
				if roots := bytes.Count(data, []byte(`"parentUuid":null`)) +
					bytes.Count(data, []byte(`"parentUuid": null`)); changed > roots {
					t.Errorf("%d/10: %d messages have other bytes", share, changed)
				}
			}
		})
	}
}

// leafChain returns the chain of a session as recorded, as far as it is complete.
func leafChain(t *testing.T, data []byte) map[string]bool {
	t.Helper()
	type entry struct {
		UUID, ParentUUID, Type string
		IsSidechain            bool
	}
	all := map[string]entry{}
	last := ""
	for line := range bytes.SplitSeq(bytes.TrimSpace(data), []byte{'\n'}) {
		var e entry
		if json.Unmarshal(line, &e) != nil || e.UUID == "" {
			continue
		}
		all[e.UUID] = e
		if e.Type == "user" || e.Type == "assistant" {
			last = e.UUID
		}
	}
	way := map[string]bool{}
	for at := last; at != "" && !way[at]; at = all[at].ParentUUID {
		way[at] = true
	}
	return way
}

// unlinked returns a message without the ids of its parents.
func unlinked(t *testing.T, native []byte) string {
	t.Helper()
	var out []string
	for line := range bytes.SplitSeq(native, []byte{'\n'}) {
		kept, _ := rawjson.Root(line).DropKeys(func(key string, _ rawjson.Value) bool { return key == "parentUuid" })
		out = append(out, string(kept))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
