package devstack

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// tailBytes is how much of the end of a log is put into an error: it mostly says why the server ended.
const tailBytes = 2000

// withLog adds the end of a server's log to an error.
func withLog(err error, text string) error {
	if text == "" {
		return err
	}
	return fmt.Errorf("%w; its log ends with:\n%s", err, text)
}

// readTail returns the end of a log, "" when it cannot be read.
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

// openLog opens a new log and keeps the previous one as .old.
func openLog(path string) (*os.File, error) {
	if err := os.Rename(path, path+".old"); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("rename the old log: %w", err)
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open a log: %w", err)
	}
	return file, nil
}
