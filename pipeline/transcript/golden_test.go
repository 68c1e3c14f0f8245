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

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/rawjson"
)

var update = flag.Bool("update", false, "write the golden files anew")

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
	if string(want) != got {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// items reads a file to its end, or to its first error, which stands last.
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

// dump writes items one a line, so that a person can check them.
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

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, f := range transcript.Formats() {
		if f == transcript.SWEAgent {
			continue // a name for files of another format
		}
		paths, err := filepath.Glob(filepath.Join("testdata", string(f), "*"))
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files for %s: %v", f, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, ".golden") || strings.HasSuffix(path, ".out") {
				continue
			}
			t.Run(path, func(t *testing.T) {
				t.Parallel()
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := transcript.Detect(data); err != nil || got != f {
					t.Fatalf("Detect = %q, %v", got, err)
				}
				got, err := items(t, bytes.NewReader(data), transcript.Options{})
				if err != nil {
					t.Fatal(err)
				}
				checkItems(t, got)
				name, _ := filepath.Rel("testdata", path)
				golden(t, name+".golden", dump(got))
				// In pieces of one byte it is the same file.
				slow, err := items(t, iotestOneByte{bytes.NewReader(data)}, transcript.Options{Format: f})
				if err != nil || dump(slow) != dump(got) {
					t.Errorf("read byte by byte it is another: %v\n%s", err, dump(slow))
				}
			})
		}
	}
}

type iotestOneByte struct{ r io.Reader }

func (o iotestOneByte) Read(p []byte) (int, error) { return o.r.Read(p[:1]) }

// checkItems holds every file to what Item promises, and every message to coming back as the same bytes.
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
				t.Errorf("the envelope is no JSON: %s", e)
			}
			open = nil
		case it.Note != nil:
			if it.Note.Count < 1 || it.Note.Reason == "" || it.Note.Code == "" {
				t.Errorf("item %d is an empty note", i)
			}
		case open == nil:
			t.Errorf("item %d stands outside of any conversation", i)
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
				t.Errorf("Raw is no part of Native: %s", q.Raw)
			}
		}
	}
}
