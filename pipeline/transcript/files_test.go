package transcript_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"precis/pipeline/transcript"
)

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
