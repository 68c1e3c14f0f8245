// Package corpus gives tests the recorded sessions of real agents, which are too large and too many for the
// repository. They are an opt-in suite: PRECIS_CORPUS names the folder that holds them, one folder below it for each
// format. Without the variable every function here returns nothing, and a test over recorded sessions has no cases.
//
//	for _, f := range corpus.Files(t, "openai-chat") {
//		t.Run(f.Name, func(t *testing.T) { … f.Read(t) … })
//	}
package corpus

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Variable names the environment variable with the absolute path of the corpus.
const Variable = "PRECIS_CORPUS"

// File is one recorded file.
type File struct {
	// Name is the path below the folder that was asked for, with slashes.
	Name string
	// Path is the path on disk.
	Path string
	// Size is in bytes.
	Size int64
}

// Read returns the content.
func (f File) Read(t testing.TB) []byte {
	t.Helper()
	data, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Given reports whether there is a corpus.
func Given() bool { return os.Getenv(Variable) != "" }

// Files returns all files below a folder of the corpus ("" for the corpus itself) in lexical order, or none without
// PRECIS_CORPUS. A folder of the corpus that does not exist or has no files fails the test.
func Files(t testing.TB, folder string) []File {
	t.Helper()
	if !Given() {
		return nil
	}
	root := filepath.Join(dir(t), filepath.FromSlash(folder))
	var files []File
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		files = append(files, File{Name: filepath.ToSlash(name), Path: path, Size: info.Size()})
		return err
	})
	if err != nil {
		t.Fatalf("read the corpus at $%s: %v", Variable, err)
	}
	if len(files) == 0 {
		t.Fatalf("the corpus at $%s has no files in %s", Variable, root)
	}
	return files
}

// Open returns one file of the corpus. It reports false without PRECIS_CORPUS; a file that the corpus does not have
// fails the test.
func Open(t testing.TB, name string) (file File, ok bool) {
	t.Helper()
	if !Given() {
		return File{}, false
	}
	path := filepath.Join(dir(t), filepath.FromSlash(name))
	info, err := os.Stat(path)
	if err != nil {
		t.Fatalf("read the corpus at $%s: %v", Variable, err)
	}
	return File{Name: name, Path: path, Size: info.Size()}, true
}

// dir is the folder of the corpus.
func dir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv(Variable)
	if !filepath.IsAbs(dir) { // a test runs in the folder of its package
		t.Fatalf("$%s is %s, which is not an absolute path", Variable, dir)
	}
	return dir
}
