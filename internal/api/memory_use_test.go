package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"precis/internal/config"
	"precis/internal/testkit/scenario"
)

// serveVariable makes this test binary serve the API for TestMemoryOfARequest, in a process of its own.
const serveVariable = "PRECIS_TEST_SERVE"

// serveForMemory is the process that TestMemoryOfARequest measures: the same test, with serveVariable set.
func serveForMemory(t *testing.T) {
	t.Helper()
	b := newBench(t, options{config: func(c *config.Config) { c.HTTP.MaxConcurrentRequests = 0 }})
	b.create("c", "")
	fmt.Printf("serving %s\n", b.url)
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent closes it
}

// measured is a server in a process of its own.
type measured struct {
	url  string
	pid  int
	stop func()
}

func serveMeasured(t *testing.T) measured {
	t.Helper()
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		t.Skip("the peak memory of a process is read from /proc")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestMemoryOfARequest$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), serveVariable+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := measured{pid: cmd.Process.Pid, stop: func() {
		_ = in.Close()
		_ = cmd.Wait()
		cancel()
	}}
	t.Cleanup(m.stop)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if url, ok := strings.CutPrefix(lines.Text(), "serving "); ok {
			m.url = url
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m
		}
	}
	t.Fatal("the server did not start")
	return m
}

// status reads a size in bytes from the process's status.
func (m measured) status(t *testing.T, name string) int64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			kb, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kb << 10
		}
	}
	t.Fatalf("no %s", name)
	return 0
}

// peak sends a request and returns by how much the process's memory grew at most, and the answer.
func (m measured) peak(t *testing.T, method, path string, body io.Reader, length int64) (int64, int, int64) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", m.pid), []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	before := m.status(t, "VmRSS")
	req, err := http.NewRequestWithContext(t.Context(), method, m.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = length
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	n, err := io.Copy(io.Discard, res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return m.status(t, "VmHWM") - before, res.StatusCode, n
}

// body is begin, then a piece as often as fits in size bytes, then end. It is not in memory as a whole.
type body struct {
	begin, piece, last, end string
	size                    int
}

func (b body) reader() (io.Reader, int64) {
	n := (b.size - len(b.begin) - len(b.last) - len(b.end)) / len(b.piece)
	length := len(b.begin) + n*len(b.piece) + len(b.last) + len(b.end)
	return io.MultiReader(strings.NewReader(b.begin), &repeated{piece: b.piece, left: n},
		strings.NewReader(b.last+b.end)), int64(length)
}

// repeated reads a text n times.
type repeated struct {
	piece string
	left  int
	rest  string
}

func (r *repeated) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if r.rest == "" {
			if r.left == 0 {
				break
			}
			r.left--
			r.rest = r.piece
		}
		m := copy(p[n:], r.rest)
		r.rest, n = r.rest[m:], n+m
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

// A request needs at most six times its body and 32 MiB, and the answer to a bad one is small.
func TestMemoryOfARequest(t *testing.T) {
	if os.Getenv(serveVariable) != "" {
		serveForMemory(t)
		return
	}
	if testing.Short() {
		t.Skip("sends bodies of 60 MB")
	}
	m := serveMeasured(t)
	const size, path = 60 << 20, "/v1/conversations/c/messages"
	user := scenario.User(strings.Repeat("some words of a long message. ", 400))
	for _, test := range []struct {
		name, method, path string
		body               body
		chunked            bool
		status             int
	}{
		{"Zeros", "POST", path, body{`{"messages":[],"meta":[`, "0,", "0", "]}", size}, false, 413},
		{"ZerosOfUnknownSize", "POST", path, body{`{"messages":[],"meta":[`, "0,", "0", "]}", size}, true, 413},
		{"Messages", "POST", path, body{`{"messages":[`, "{},", "{}", "]}", size}, false, 413},
		{"Keys", "POST", path, body{`{`, `"some key":1,`, `"a":1`, "}", size}, false, 422},
		{"Depth", "POST", path, body{`{"usage":`, "[", "0", "}", size}, false, 400},
		{"Text", "POST", "/v1/conversations/c/segments", body{`{"text":"`, "x", "", `"}`, size}, false, 413},
		{"Legal", "POST", path, body{`{"messages":[`, user + ",", user, "]}", size}, false, 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader, length := test.body.reader()
			if test.chunked {
				length = -1
			}
			grew, status, answer := m.peak(t, test.method, test.path, reader, length)
			t.Logf("grew by %d MiB, status %d, answer of %d bytes", grew>>20, status, answer)
			if status != test.status {
				t.Errorf("status %d", status)
			}
			if limit := int64(6*test.body.size + 32<<20); grew > limit {
				t.Errorf("the process grew by %d MiB, at most %d are allowed", grew>>20, limit>>20)
			}
			if status >= 400 && answer > 64<<10 {
				t.Errorf("the answer has %d bytes", answer)
			}
		})
	}
}
