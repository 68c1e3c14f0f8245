package transcript_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
	"precis/pipeline/transcript/convert"
	"precis/pipeline/transcript/rawjson"
)

// seeds adds the files of a format's testdata to a fuzz target.
func seeds(f *testing.F, format transcript.Format) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", string(format), "*"))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, ".golden") || strings.HasSuffix(path, ".out") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
}

// fuzzDecoder checks the guarantees of a decoder for any input: it ends, with items in order or with an error that
// has a kind; each message keeps its bytes, can be edited, written and converted.
func fuzzDecoder(f *testing.F, format transcript.Format) {
	seeds(f, format)
	f.Fuzz(func(t *testing.T, in []byte) {
		_, _ = transcript.Detect(in)
		for _, lenient := range []bool{false, true} {
			d, err := transcript.NewDecoder(bytes.NewReader(in),
				transcript.Options{Format: format, Lenient: lenient, MaxMessageBytes: 1 << 20})
			if err != nil {
				if pipeline.KindOf(err) != pipeline.BadRequest {
					t.Fatalf("an error of kind %s: %v", pipeline.KindOf(err), err)
				}
				return
			}
			var all []transcript.Item
			for {
				it, err := d.Next()
				if err == io.EOF {
					checkItems(t, all)
					break
				}
				if err != nil {
					if lenient || pipeline.KindOf(err) != pipeline.BadRequest {
						t.Fatalf("read leniently is %v: %v", lenient, err)
					}
					break
				}
				if all = append(all, it); len(all) > 4*len(in)+16 {
					t.Fatal("there are more items than the file can hold")
				}
			}
			fuzzWrite(t, all)
		}
	})
}

func fuzzWrite(t *testing.T, all []transcript.Item) {
	t.Helper()
	var meta transcript.Meta
	var items []pipeline.ContextItem
	for _, it := range all {
		switch {
		case it.Start != nil:
			items = nil
		case it.Message != nil:
			items = append(items, pipeline.ContextItem{Message: it.Message})
		case it.End != nil:
			meta = *it.End
			codec, err := transcript.CodecFor(meta.Format)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range items {
				for i, p := range c.Message.Parts {
					e := replace(i, -1, "x")
					if p.Kind == pipeline.PartReasoning || p.Kind == pipeline.PartToolCall {
						e = drop(i, -1)
					}
					out, err := codec.Encode(*c.Message, []pipeline.Edit{e})
					if err != nil {
						t.Fatalf("%v: %+v of %s", err, e, c.Message.Native)
					}
					if out == nil {
						continue
					}
					if _, err := codec.Decode(out); err != nil {
						t.Fatalf("%v: %s", err, out)
					}
				}
			}
			targets := []transcript.Format{
				transcript.Anthropic, transcript.OpenAI, transcript.OpenAIResponses,
				transcript.Google, meta.Format,
			}
			if meta.Format == transcript.Google {
				targets = append(targets, transcript.GeminiCLI) // a chat that it saved
			}
			for _, to := range targets {
				var b bytes.Buffer
				if _, err := convert.WriteFile(&b, to, transcript.Output{Meta: meta, Items: items}); err != nil {
					t.Fatalf("to %s: %v", to, err)
				}
				if err := rawjson.CheckLines(b.Bytes()); err != nil {
					t.Fatalf("to %s: %v: %s", to, err, b.Bytes())
				}
			}
		}
	}
}

func FuzzADK(f *testing.F)             { fuzzDecoder(f, transcript.ADK) }
func FuzzAnthropic(f *testing.F)       { fuzzDecoder(f, transcript.Anthropic) }
func FuzzClaudeCode(f *testing.F)      { fuzzDecoder(f, transcript.ClaudeCode) }
func FuzzClaudeStream(f *testing.F)    { fuzzDecoder(f, transcript.ClaudeStream) }
func FuzzCodex(f *testing.F)           { fuzzDecoder(f, transcript.Codex) }
func FuzzCopilot(f *testing.F)         { fuzzDecoder(f, transcript.Copilot) }
func FuzzCursor(f *testing.F)          { fuzzDecoder(f, transcript.Cursor) }
func FuzzGeminiCLI(f *testing.F)       { fuzzDecoder(f, transcript.GeminiCLI) }
func FuzzGoogle(f *testing.F)          { fuzzDecoder(f, transcript.Google) }
func FuzzKimi(f *testing.F)            { fuzzDecoder(f, transcript.Kimi) }
func FuzzQwen(f *testing.F)            { fuzzDecoder(f, transcript.Qwen) }
func FuzzLangChain(f *testing.F)       { fuzzDecoder(f, transcript.LangChain) }
func FuzzMSAgent(f *testing.F)         { fuzzDecoder(f, transcript.MSAgent) }
func FuzzOpenAI(f *testing.F)          { fuzzDecoder(f, transcript.OpenAI) }
func FuzzOpenAIResponses(f *testing.F) { fuzzDecoder(f, transcript.OpenAIResponses) }
func FuzzOpenCode(f *testing.F)        { fuzzDecoder(f, transcript.OpenCode) }
func FuzzOpenHands(f *testing.F)       { fuzzDecoder(f, transcript.OpenHands) }
func FuzzPi(f *testing.F)              { fuzzDecoder(f, transcript.Pi) }
func FuzzRoo(f *testing.F)             { fuzzDecoder(f, transcript.Roo) }
func FuzzVercel(f *testing.F)          { fuzzDecoder(f, transcript.Vercel) }
