package transcript_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, diff)
	}
}

// items reads a file to its end, or to its first error.
func items(t *testing.T, r io.Reader, o transcript.Options) ([]transcript.Item, error) {
	t.Helper()
	d, err := transcript.NewDecoder(r, o)
	if err != nil {
		return nil, err
	}
	var out []transcript.Item
	for {
		it, err := d.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			if _, again := d.Next(); !errors.Is(again, err) {
				t.Errorf("after an error the decoder says %v", again)
			}
			return out, err
		}
		out = append(out, it)
	}
}

// dump writes items one per line, in a readable form.
func dump(all []transcript.Item) string {
	var b strings.Builder
	for _, it := range all {
		fmt.Fprintf(&b, "%d ", it.Line)
		switch {
		case it.Start != nil:
			fmt.Fprintf(&b, "start %s", dumpMeta(*it.Start))
		case it.End != nil:
			fmt.Fprintf(&b, "end %s", dumpMeta(*it.End))
		case it.Message != nil:
			b.WriteString(dumpMessage(*it.Message))
		case it.Compaction != nil:
			c := it.Compaction
			carried := ""
			if len(c.Carried) > 0 {
				carried = fmt.Sprintf(" carried %d", c.Carried)
			}
			fmt.Fprintf(&b, "compaction %s %d→%d kept %d%s\n  %s", c.Trigger, c.TokensBefore, c.TokensAfter, c.Kept,
				carried, dumpMessage(c.Summary))
			if c.KeptFirst > 0 {
				fmt.Fprintf(&b, "\n  kept the first %d", c.KeptFirst)
			}
		case it.Usage != nil:
			fmt.Fprintf(&b, "usage %+v", *it.Usage)
		case it.Note != nil:
			fmt.Fprintf(&b, "note %s %q ×%d: %s", it.Note.Code, it.Note.What, it.Note.Count, it.Note.Reason)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func dumpMeta(m transcript.Meta) string {
	s := fmt.Sprintf("%s source=%q id=%q vendor=%q model=%q max=%d side=%v", m.Format, m.Source, m.ID, m.Vendor,
		m.Model, m.MaxTokens, m.Sidechain)
	if m.Window > 0 {
		s += fmt.Sprintf(" window=%d", m.Window)
	}
	for _, x := range []struct {
		name string
		raw  []byte
	}{{"system", m.System}, {"tools", m.Tools}, {"envelope", m.Envelope}} {
		if x.raw != nil {
			s += fmt.Sprintf("\n  %s %s", x.name, shown(x.raw))
		}
	}
	return s
}

func dumpMessage(m pipeline.Message) string {
	s := fmt.Sprintf("message %s", m.Role)
	if m.Kind != "" {
		s += "/" + string(m.Kind)
	}
	if m.ID != "" {
		s += " id=" + m.ID
	}
	for _, p := range m.Parts {
		s += "\n  " + dumpPart(p)
	}
	return s + "\n  = " + shown(m.Native)
}

func dumpPart(p pipeline.Part) string {
	s := string(p.Kind)
	for _, x := range [][2]string{
		{"type", p.Type},
		{"call", p.CallID},
		{"name", p.Name},
		{"input", p.Input},
		{"text", p.Text},
		{"media", p.MediaType},
	} {
		if x[1] != "" {
			s += fmt.Sprintf(" %s=%+q", x[0], x[1])
		}
	}
	if p.IsError {
		s += " error"
	}
	if p.Bytes+p.Width+p.Height > 0 {
		s += fmt.Sprintf(" %d bytes %d×%d", p.Bytes, p.Width, p.Height)
	}
	for _, c := range p.Content {
		s += "\n    " + dumpPart(c)
	}
	return s
}

func shown(b []byte) string { return strings.ReplaceAll(string(b), "\n", "⏎") }

// checkItems checks the guarantees of Item, and that every message keeps its bytes.
func checkItems(t *testing.T, all []transcript.Item) {
	t.Helper()
	var open *transcript.Meta
	for i, it := range all {
		set := 0
		for _, x := range []bool{
			it.Start != nil, it.Message != nil, it.Compaction != nil, it.Usage != nil,
			it.Note != nil, it.End != nil,
		} {
			if x {
				set++
			}
		}
		if set != 1 || it.Line < 1 {
			t.Errorf("item %d has %d things in it, line %d", i, set, it.Line)
		}
		switch {
		case it.Start != nil:
			if open != nil {
				t.Errorf("item %d opens a conversation in a conversation", i)
			}
			open = it.Start
		case it.End != nil:
			if open == nil || it.End.Format != open.Format {
				t.Errorf("item %d ends no conversation, or another", i)
			}
			if e := it.End.Envelope; e != nil && rawjson.Check(e) != nil {
				t.Errorf("the envelope is not JSON: %s", e)
			}
			open = nil
		case it.Note != nil:
			if it.Note.Count < 1 || it.Note.Reason == "" || it.Note.Code == "" {
				t.Errorf("item %d is an empty note", i)
			}
		case open == nil:
			t.Errorf("item %d is outside of any conversation", i)
		case it.Message != nil:
			checkMessage(t, open.Format, *it.Message)
		case it.Compaction != nil:
			if it.Compaction.Summary.Kind != pipeline.KindSummary {
				t.Errorf("item %d: a summary of kind %q", i, it.Compaction.Summary.Kind)
			}
			checkMessage(t, open.Format, it.Compaction.Summary)
		}
	}
	if open != nil {
		t.Error("the last conversation has no end")
	}
}

func checkMessage(t *testing.T, f transcript.Format, m pipeline.Message) {
	t.Helper()
	c, err := transcript.CodecFor(f)
	if err != nil {
		t.Fatal(err)
	}
	back, err := c.Decode(m.Native)
	if err != nil {
		t.Fatalf("a decoded message cannot be decoded: %v\n%s", err, m.Native)
	}
	if back.Role != m.Role || fmt.Sprint(back.Parts) != fmt.Sprint(m.Parts) {
		t.Errorf("decoded again it is another message: %s", m.Native)
	}
	out, err := c.Encode(back, nil)
	if err != nil || !bytes.Equal(out, m.Native) {
		t.Errorf("encoded again it is another: %v\n%s\n%s", err, out, m.Native)
	}
	for _, p := range m.Parts {
		for _, q := range append([]pipeline.Part{p}, p.Content...) {
			if !bytes.Contains(m.Native, q.Raw) {
				t.Errorf("Raw is not part of Native: %s", q.Raw)
			}
		}
	}
}

// codecOf returns the codec of a format.
func codecOf(t *testing.T, f transcript.Format) transcript.Codec {
	t.Helper()
	c, err := transcript.CodecFor(f)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func replace(part, content int, text string) pipeline.Edit {
	return pipeline.Edit{Part: part, Content: content, Op: pipeline.EditReplace, Text: text}
}

func drop(part, content int) pipeline.Edit {
	return pipeline.Edit{Part: part, Content: content, Op: pipeline.EditDrop}
}

// contextOf makes a context of a conversation's messages as they are.
func contextOf(messages []pipeline.Message) []pipeline.ContextItem {
	out := make([]pipeline.ContextItem, len(messages))
	for i := range messages {
		out[i].Message = &messages[i]
	}
	return out
}

func readFile(t *testing.T, path string) transcript.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// fixtures are the files of a format in testdata.
func fixtures(t *testing.T, f transcript.Format) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", string(f), "*"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		if !strings.HasSuffix(path, ".golden") && !strings.HasSuffix(path, ".out") {
			out = append(out, path)
		}
	}
	return out
}

// tight opens a decoder that holds back no more than a few bytes.
func tight(t *testing.T, in string, hold, logs int, o transcript.Options) *transcript.Decoder {
	t.Helper()
	d, err := transcript.NewDecoder(strings.NewReader(in), o)
	if err != nil {
		t.Fatal(err)
	}
	d.HoldAtMost(hold, logs)
	return d
}

func drain(d *transcript.Decoder) ([]transcript.Item, error) {
	var out []transcript.Item
	for {
		it, err := d.Next()
		if err == io.EOF {
			return out, nil
		}
		if err != nil {
			return out, err
		}
		out = append(out, it)
	}
}

func natives(all []transcript.Item) (out []string) {
	for _, it := range all {
		if it.Message != nil {
			out = append(out, string(it.Message.Native))
		}
	}
	return out
}
