package memory

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"

	"precis/internal/store"
)

// The permissions of files and folders: the owner writes, the group reads, others have no access to transcripts.
const (
	folderMode = 0o750
	fileMode   = 0o640
)

// FolderName returns the folder of a conversation's files below the configured folder: one folder for each tenant,
// with one for each conversation. Different ids have different names, also on file systems that ignore case.
func FolderName(ref store.ConversationRef) string {
	return path.Join(safeName(ref.Tenant), safeName(ref.ID))
}

var plainName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

// safeName returns an id as a file name. An id with anything but lower-case letters, digits and ._- gets a ~ and a
// part of its SHA-256 at the end, which no plain name has.
func safeName(id string) string {
	if plainName.MatchString(id) && !strings.HasSuffix(id, ".") {
		return id
	}
	const most = 60
	short := strings.Map(func(r rune) rune {
		if r < 0x80 && (r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-') {
			return r
		}
		return '_'
	}, id)
	sum := sha256.Sum256([]byte(id))
	return short[:min(len(short), most)] + "~" + hex.EncodeToString(sum[:10])
}

// WriteFolder writes the files of a conversation's memory below folder, which it creates: each segment and note, and
// INDEX.md after them. A segment's file of the right size stays, and any other file with the right content; the rest is
// written. Each file appears whole or not at all. Other files in the folder stay. It returns how many files it wrote.
func (m Memory) WriteFolder(ctx context.Context, folder string, ref store.ConversationRef) (written int, err error) {
	list, err := m.segments(ctx, ref)
	if err != nil || len(list) == 0 {
		return 0, err
	}
	root, err := openFolder(folder, FolderName(ref))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, g := range list {
		if !g.Note() && g.Size > 0 && sizeOf(root, g.Name) == g.Size {
			continue
		}
		_, text, err := m.Read(ctx, ref, g.Name)
		if err != nil {
			return written, err
		}
		n, err := writeFile(root, g.Name, []byte(text))
		if written += n; err != nil {
			return written, err
		}
	}
	_, text, err := m.Read(ctx, ref, IndexName)
	if err != nil {
		return written, err
	}
	n, err := writeFile(root, IndexName, []byte(text))
	return written + n, err
}

// openFolder opens a folder below another one as an os.Root: no link in it leads to the outside.
func openFolder(folder, name string) (*os.Root, error) {
	if err := os.MkdirAll(folder, folderMode); err != nil {
		return nil, fmt.Errorf("make memory.folder: %w", err)
	}
	top, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open memory.folder: %w", err)
	}
	err = top.MkdirAll(name, folderMode)
	var root *os.Root
	if err == nil {
		root, err = top.OpenRoot(name)
	}
	if closing := top.Close(); err == nil && closing != nil {
		err = errors.Join(closing, root.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("make the folder of a conversation's memory: %w", err)
	}
	return root, nil
}

// sizeOf returns the size of a file, -1 if there is none.
func sizeOf(root *os.Root, name string) int64 {
	info, err := root.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return -1
	}
	return info.Size()
}

// writeFile writes a file unless it exists with that content, and returns how many it wrote: 0 or 1. A reader
// sees the old or the new file, and a crash leaves at most a hidden temporary file.
func writeFile(root *os.Root, name string, content []byte) (written int, err error) {
	if sizeOf(root, name) == int64(len(content)) {
		if old, err := root.ReadFile(name); err == nil && bytes.Equal(old, content) {
			return 0, nil
		}
	}
	temporary := "." + rand.Text() + ".tmp"
	defer func() {
		if err != nil {
			if failed := root.Remove(temporary); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
				err = errors.Join(err, failed)
			}
			err = fmt.Errorf("write %s: %w", name, err)
		}
	}()
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, fileMode)
	if err != nil {
		return 0, err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, err
	}
	if err := root.Rename(temporary, name); err != nil {
		return 0, err
	}
	return 1, nil
}
