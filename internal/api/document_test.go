package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"precis/internal/service"
)

var update = flag.Bool("update", false, "write descriptions.json instead of comparing it")

// The comments in the document are those of the code.
func TestDescriptionsAreTheCode(t *testing.T) {
	t.Parallel()
	s := New(Options{Service: &service.Service{}})
	registry := s.api.OpenAPI().Components.Schemas
	sources := map[string]map[string]map[string]string{}
	want := map[string]map[string]string{}
	take := func(typ reflect.Type) {
		if typ.Name() == "" || !strings.HasPrefix(typ.PkgPath(), "precis/") || typ.PkgPath() == "precis/internal/api" {
			return // its own types have their descriptions as tags
		}
		if sources[typ.PkgPath()] == nil {
			sources[typ.PkgPath()] = commentsOf(t, typ.PkgPath())
		}
		if c := sources[typ.PkgPath()][typ.Name()]; len(c) > 0 {
			want[typeName(typ)] = c
		}
	}
	for name := range registry.Map() {
		typ := registry.TypeFromRef(refPrefix + name)
		if typ == nil || typ.Kind() != reflect.Struct {
			continue
		}
		take(typ)
		for _, f := range fieldsOf(typ) {
			owner, _ := declared(typ, f.index)
			take(owner)
		}
	}
	if *update {
		out, err := json.MarshalIndent(want, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("descriptions.json", append(out, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	var got map[string]map[string]string
	if err := json.Unmarshal(descriptionsJSON, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("descriptions.json is not what the comments say; run: go test ./internal/api -run "+
			"TestDescriptions -update\n%s", diff)
	}
}

// commentsOf reads the comments of a package's structs: by type, then by field.
func commentsOf(t *testing.T, pkg string) map[string]map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", strings.TrimPrefix(pkg, "precis/"), "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("package %s: %v", pkg, err)
	}
	out := map[string]map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range decl.Specs {
				spec, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				if st, ok := spec.Type.(*ast.StructType); ok {
					doc := spec.Doc
					if doc == nil {
						doc = decl.Doc
					}
					out[spec.Name.Name] = structComments(doc, st)
				}
			}
		}
	}
	return out
}

// structComments gives a field the comment above it, or the one before when that names it: "First and Last are…".
func structComments(doc *ast.CommentGroup, st *ast.StructType) map[string]string {
	out := map[string]string{}
	put := func(name, text string) {
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			out[name] = text
		}
	}
	put("", doc.Text())
	last := ""
	for _, f := range st.Fields.List {
		text := f.Doc.Text()
		if text == "" {
			text = f.Comment.Text()
		}
		for _, name := range f.Names {
			if !name.IsExported() {
				continue
			}
			switch {
			case text != "":
				put(name.Name, text)
				last = text
			case regexp.MustCompile(`\b` + name.Name + `\b`).MatchString(last):
				put(name.Name, last)
			}
		}
	}
	return out
}

func TestTheDocumentTellsWhatMayBeNull(t *testing.T) {
	t.Parallel()
	s := New(Options{Service: &service.Service{}})
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				AdditionalProperties *bool
				Properties           map[string]json.RawMessage
			}
		}
	}
	raw, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	stats := doc.Components.Schemas["Stats"].Properties["marker"]
	if !bytes.Contains(stats, []byte(`"anyOf"`)) || !bytes.Contains(stats, []byte(`"null"`)) ||
		!bytes.Contains(stats, []byte(`"description"`)) {
		t.Errorf("a context's marker is %s", stats)
	}
	if doc.Components.Schemas["Appended"].AdditionalProperties != nil {
		t.Error("no field may be added to an answer")
	}
	if p := doc.Components.Schemas["NewMessagesInput"].AdditionalProperties; p == nil || *p {
		t.Error("a request may hold any field")
	}
}
