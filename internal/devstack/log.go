package devstack

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes of a log go into an error: what a server says last is mostly why it ended.
const tailBytes = 2000

// withLog adds what the server wrote last to why it did not start.
func withLog(err error, text string) error {
	if text == "" {
		return err
	}
	return fmt.Errorf("%w; its log ends with:\n%s", err, text)
}

// readTail is empty for a log that cannot be read.
func readTail(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = file.Close() }()
	return tail(file)
}

func tail(file *os.File) string {
	info, err := file.Stat()
	if err != nil {
		return ""
	}
	text := make([]byte, min(info.Size(), tailBytes))
	n, err := file.ReadAt(text, info.Size()-int64(len(text)))
	if err != nil && err != io.EOF {
		return ""
	}
	return strings.TrimSpace(string(text[:n]))
}

// openLog begins a new log and keeps the one before as .old.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".old"); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("put the old log aside: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	return file, nil
}
