package config

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	koanfyaml "github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/file"
	"go.yaml.in/yaml/v3"
)

const (
	// FileName is the file that is read when none is named, if it exists.
	FileName = "precis.yaml"
	// FileVariable names the file.
	FileVariable = "PRECIS_CONFIG"
)

func (l *loader) loadFile(opts LoadOptions) {
	name, named := fileName(opts)
	from := Origin{Source: SourceFile, Name: name}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(opts.WorkDir, path)
	}
	content, err := file.Provider(path).ReadBytes()
	if errors.Is(err, fs.ErrNotExist) && !named {
		return
	}
	if err != nil {
		l.fail(nil, from, "the configuration file cannot be read: %s", err)
		return
	}
	root, err := oneDocument(content)
	if err != nil {
		l.fail(nil, from, "%s", err)
		return
	}
	values, err := koanfyaml.Parser().Unmarshal(content)
	if err != nil {
		l.fail(nil, from, "%s", err)
		return
	}
	l.add(values, func(path []string) Origin {
		at := from
		at.Line = fileLine(root, path)
		return at
	})
}

// fileName returns the file to read, and whether the caller asked for it by name.
func fileName(opts LoadOptions) (name string, named bool) {
	if opts.File != "" {
		return opts.File, true
	}
	if opts.Flags != nil {
		if f := opts.Flags.Lookup(flagConfig); f != nil && f.Changed {
			return f.Value.String(), true
		}
	}
	for _, v := range opts.Environ {
		if name, ok := strings.CutPrefix(v, FileVariable+"="); ok && name != "" {
			return name, true
		}
	}
	return FileName, false
}

// oneDocument reads the nodes of a YAML file, which know their lines.
func oneDocument(content []byte) (*yaml.Node, error) {
	var root yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(content))
	if err := documents.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := documents.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return nil, errors.New("the file has more than one YAML document, but only one is read; remove the others")
	}
	return &root, nil
}

// fileLine returns the line of a key, 0 when the key is not written out in the file.
func fileLine(node *yaml.Node, path []string) int {
	switch {
	case node.Kind == yaml.DocumentNode && len(node.Content) == 1:
		return fileLine(node.Content[0], path)
	case node.Kind == yaml.AliasNode:
		return fileLine(node.Alias, path)
	case len(path) == 0:
		return node.Line
	case node.Kind != yaml.MappingNode:
		return 0
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value != path[0] {
			continue
		}
		if len(path) == 1 {
			return node.Content[i].Line
		}
		return fileLine(node.Content[i+1], path[1:])
	}
	return 0
}
