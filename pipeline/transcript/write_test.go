package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"precis/internal/testkit"
	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
	"precis/pipeline/transcript/rawjson"
)

func TestWriteFile(t *testing.T) {
	t.Parallel()
	summary := pipeline.Made{
		Role: pipeline.RoleUser, Kind: pipeline.KindSummary,
		Text: "<conversation_summary>\nearlier\n</conversation_summary>",
	}
	state := pipeline.Made{Role: pipeline.RoleUser, Kind: pipeline.KindSynthetic, Text: "todo: none"}
	for _, c := range []struct {
		name, path string
		to         transcript.Format
		tail       int // messages that are kept behind the summary; all, and no summary, when negative
	}{
		{"anthropic", "anthropic/request.json", transcript.Anthropic, 3},
		{"anthropic-all", "anthropic/recorded.json", transcript.Anthropic, -1},
		{"openai", "openai/request.json", transcript.OpenAI, 2},
		{"openai-array", "openai/array.json", transcript.OpenAI, -1},
		{"openai-several", "openai/tau.json", transcript.OpenAI, -1},
		{"claude-code", "claude-code/turns.jsonl", transcript.ClaudeCode, 2},
		{"claude-code-nothing-kept", "claude-code/turns.jsonl", transcript.ClaudeCode, 0},
		{"claude-code-from-its-root", "claude-code/turns.jsonl", transcript.ClaudeCode, 5},
		{"claude-code-all", "claude-code/turns.jsonl", transcript.ClaudeCode, -1},
		{"claude-code-to-anthropic", "claude-code/turns.jsonl", transcript.Anthropic, 2},
		{"starts-with-assistant", "claude-code/turns.jsonl", transcript.Anthropic, -2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var all []transcript.Output
			for _, conv := range readFile(t, filepath.Join("testdata", c.path)).Conversations {
				items := contextOf(conv.Messages)
				switch {
				case c.tail >= 0:
					items = append([]pipeline.ContextItem{{Made: &summary}, {Made: &state}},
						items[len(items)-c.tail:]...)
				case c.tail == -2:
					items = items[1:]
				}
				all = append(all, transcript.Output{
					Meta: conv.Meta, Items: items, Trigger: "auto",
					TokensBefore: 12345,
				})
			}
			var b, again bytes.Buffer
			if _, err := convert.WriteFile(&b, c.to, all...); err != nil {
				t.Fatal(err)
			}
			golden(t, "write-"+c.name+".out", b.String())
			if _, err := convert.WriteFile(&again, c.to, all...); err != nil || !bytes.Equal(b.Bytes(), again.Bytes()) {
				t.Errorf("written twice it is another file: %v", err)
			}
			back, err := transcript.Read(&b, transcript.Options{})
			if err != nil || back.Format != c.to || len(back.Conversations) != len(all) {
				t.Fatalf("read back: %v, format %s, %d conversations", err, back.Format, len(back.Conversations))
			}
		})
	}
}

func TestWriteFileErrors(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if _, err := convert.WriteFile(&b, transcript.ClaudeCode,
		transcript.Output{Meta: transcript.Meta{Format: transcript.OpenAI}}); err == nil ||
		!strings.Contains(err.Error(), "conversation 1: bad_request: no way leads") {
		t.Errorf("got %v", err)
	}
	full := errors.New("disk full")
	if _, err := convert.WriteFile(failingWriter{full}, transcript.OpenAI,
		transcript.Output{Meta: transcript.Meta{Format: transcript.OpenAI}}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	broken := pipeline.Message{Native: []byte("{")}
	for _, f := range transcript.Formats() {
		o := transcript.Output{
			Meta:  transcript.Meta{Format: f},
			Items: []pipeline.ContextItem{{Message: &broken, Edits: []pipeline.Edit{drop(0, -1)}}},
		}
		if _, err := convert.WriteFile(&b, f, o); err == nil ||
			!strings.Contains(err.Error(), "entry 0 of the context") {
			t.Errorf("%s: %v", f, err)
		}
	}
}

type failingWriter struct{ err error }

func (f failingWriter) Write([]byte) (int, error) { return 0, f.err }

// chain walks a session as Claude Code does when it resumes one: from the last record that is a message, along
// parentUuid. It gives the uuids on the way.
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
			t.Errorf("uuid %s stands twice", e.UUID)
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

// Of every session of the collection the last part is written behind a summary. What Claude Code would then
// resume is the summary and the messages that were on its chain before, with the same bytes.
func TestWrittenSessionsCanBeResumed(t *testing.T) {
	t.Parallel()
	root := testkit.Shared(t, "data/claude-code-jsonl")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			conv := readFile(t, path).Conversations[0]
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
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// leafChain is the chain of a session as it was recorded, as far as it leads.
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

// unlinked is a message without the names of its parents.
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
