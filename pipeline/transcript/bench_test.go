package transcript_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"precis/pipeline"
	"precis/pipeline/transcript"
)

// benchFile is a made-up session of a tool-heavy agent in a format, of about 8 MB.
func benchFile(f transcript.Format) []byte {
	var b bytes.Buffer
	output := strings.Repeat(
		`   12\tfunc parse(s string) error {\n\t\treturn errors.New(\"not yet\") // größer als vorher\n`, 60)
	if f == transcript.ClaudeCode {
		for i := range 1200 {
			fmt.Fprintf(&b, `{"parentUuid":"u%d","isSidechain":false,"cwd":"/p","sessionId":"s","version":"2.0.5",`+
				`"type":"assistant","message":{"model":"claude-x","id":"m%d","type":"message","role":"assistant",`+
				`"content":[{"type":"tool_use","id":"t%d","name":"Read","input":{"path":"a.go"}}],"usage":{`+
				`"input_tokens":10,"output_tokens":2}},"uuid":"a%d"}`+"\n", i, i, i, i)
			fmt.Fprintf(&b, `{"parentUuid":"a%d","isSidechain":false,"cwd":"/p","sessionId":"s","version":"2.0.5",`+
				`"type":"user","message":{"role":"user","content":[{"tool_use_id":"t%d","type":"tool_result",`+
				`"content":"%s"}]},"toolUseResult":{"stdout":"ok"},"uuid":"r%d"}`+"\n", i, i, output, i)
		}
		return b.Bytes()
	}
	b.WriteString(`{"model":"claude-x","max_tokens":100,"messages":[`)
	if f == transcript.OpenAI {
		b.Reset()
		b.WriteString(`{"model":"gpt-x","messages":[{"role":"system","content":"S"}`)
	}
	for i := range 1200 {
		if i > 0 || f == transcript.OpenAI {
			b.WriteByte(',')
		}
		if f == transcript.OpenAI {
			fmt.Fprintf(&b, `{"role":"assistant","content":null,"tool_calls":[{"id":"t%d","type":"function",`+
				`"function":{"name":"read","arguments":"{\"path\": \"a.go\"}"}}]},{"role":"tool",`+
				`"tool_call_id":"t%d","content":"%s"}`, i, i, output)
			continue
		}
		fmt.Fprintf(&b, `{"role":"assistant","content":[{"type":"tool_use","id":"t%d","name":"read","input":{`+
			`"path":"a.go"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":"%s"}]}`,
			i, i, output)
	}
	b.WriteString("]}\n")
	return b.Bytes()
}

// BenchmarkDecode measures the reading of a file, in MB/s.
func BenchmarkDecode(b *testing.B) {
	for _, f := range transcript.Formats() {
		b.Run(string(f), func(b *testing.B) {
			data := benchFile(f)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				d, err := transcript.NewDecoder(bytes.NewReader(data), transcript.Options{})
				if err != nil {
					b.Fatal(err)
				}
				n := 0
				for {
					it, err := d.Next()
					if err == io.EOF {
						break
					}
					if err != nil {
						b.Fatal(err)
					}
					if it.Message != nil {
						n++
					}
				}
				if n < 2400 {
					b.Fatalf("%d messages", n)
				}
			}
		})
	}
}

// BenchmarkEncode measures the writing of a context with an edit in each result, in MB/s of the original.
func BenchmarkEncode(b *testing.B) {
	for _, f := range transcript.Formats() {
		b.Run(string(f), func(b *testing.B) {
			data := benchFile(f)
			file, err := transcript.Read(bytes.NewReader(data), transcript.Options{})
			if err != nil {
				b.Fatal(err)
			}
			c := file.Conversations[0]
			items := contextOf(c.Messages)
			for i := range items {
				if len(items[i].Message.Results()) > 0 {
					items[i].Edits = []pipeline.Edit{replace(0, -1, "[result shortened]")}
				}
			}
			codec, _ := transcript.CodecFor(f)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := transcript.EncodeItems(codec, items); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
