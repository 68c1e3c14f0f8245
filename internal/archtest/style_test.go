package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxLine     = 120 // characters; a tab counts as 4
	maxFunction = 80  // lines
)

// structTag matches the line of a struct's field with its tag, which Go does not break.
var structTag = regexp.MustCompile("`[a-z_]+:\".*`(,|$| //)")

// banned are words of the glossary's last column that are never right here. Words that are sometimes right, such as
// "told" and "gone", are left to the reader.
var banned = regexp.MustCompile(`\banew\b|\binVain\b|\basks whoever\b|[pP]atience\b`)

// eachFile calls check with every Go file and every page of documentation. Test data and prompts, which are sent to
// models as they are, are left out.
func eachFile(t *testing.T, check func(name string, content []byte)) {
	t.Helper()
	skipped := []string{"testdata", "prompts", "node_modules", "bin", "dist"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if path != root && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(skipped, entry.Name())) {
				return filepath.SkipDir
			}
			return nil
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md":
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		check(filepath.ToSlash(name), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLinesAreShort(t *testing.T) {
	t.Parallel()
	eachFile(t, func(name string, content []byte) {
		if name == "docs/ladder.md" {
			return // one table, written by a test
		}
		exempt := codeBlocks(content)
		if filepath.Ext(name) == ".go" {
			exempt = rawStrings(t, name, content)
		}
		number := 0
		for line := range bytes.Lines(content) {
			number++
			text := strings.ReplaceAll(strings.TrimRight(string(line), "\n"), "\t", "    ")
			if utf8.RuneCountInString(text) > maxLine && !exempt[number] && !structTag.MatchString(text) {
				t.Errorf("%s:%d: the line has more than %d characters", name, number, maxLine)
			}
		}
	})
}

// codeBlocks returns the numbers of the lines of a page that are in code blocks: commands and their output are not
// wrapped.
func codeBlocks(content []byte) map[int]bool {
	lines, number, inside := map[int]bool{}, 0, false
	for line := range bytes.Lines(content) {
		number++
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")) {
			inside = !inside
		}
		lines[number] = inside
	}
	return lines
}

// rawStrings returns the numbers of the lines of a Go file that have a raw string: its text is data.
func rawStrings(t *testing.T, name string, content []byte) map[int]bool {
	t.Helper()
	lines := map[int]bool{}
	files, file := parse(t, name, content)
	ast.Inspect(file, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && strings.HasPrefix(lit.Value, "`") {
			for l := files.Position(lit.Pos()).Line; l <= files.Position(lit.End()).Line; l++ {
				lines[l] = true
			}
		}
		return true
	})
	return lines
}

func parse(t *testing.T, name string, content []byte) (*token.FileSet, *ast.File) {
	t.Helper()
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return files, file
}

func TestFunctionsAreShort(t *testing.T) {
	t.Parallel()
	eachFile(t, func(name string, content []byte) {
		if filepath.Ext(name) != ".go" {
			return
		}
		files, file := parse(t, name, content)
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			first, last := files.Position(f.Pos()).Line, files.Position(f.End()).Line
			if lines := last - first + 1; lines > maxFunction {
				t.Errorf("%s:%d: %s has %d lines, more than %d", name, first, f.Name.Name, lines, maxFunction)
			}
		}
	})
}

func TestWordsAreThoseOfTheGlossary(t *testing.T) {
	t.Parallel()
	eachFile(t, func(name string, content []byte) {
		if strings.HasSuffix(name, "_test.go") {
			return // the text of test messages may have any word
		}
		number := 0
		for line := range bytes.Lines(content) {
			number++
			if word := banned.Find(line); word != nil {
				t.Errorf("%s:%d: use another word than %q: %s", name, number, word, bytes.TrimSpace(line))
			}
		}
	})
}
