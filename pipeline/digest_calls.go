package pipeline

import (
	"encoding/json"
	"slices"
	"strings"
)

// thoughtTools are tools whose calls change nothing and do not count as actions.
var thoughtTools = []string{"think", "todowrite", "todoread", "update_plan"}

// The names of the arguments in which tools take a file and a command.
var (
	fileArguments = []string{
		"file_path", "filePath", "notebook_path", "path", "filename", "target_file", "file",
		"absolute_path",
	}
	commandArguments = []string{"command", "cmd", "script"}
)

// call records what a tool call touched or ran.
func (d *digest) call(p Part, failed bool) {
	name := strings.ToLower(p.Name)
	if slices.Contains(thoughtTools, name) {
		return
	}
	var args map[string]json.RawMessage
	if d.decode([]byte(p.Input), &args) != nil {
		args = nil // free text, or damaged: the name and the text still say what it was
	}
	patched := d.patchedFiles(p.Input, args)
	for _, path := range patched {
		d.touch(path, true)
	}
	path := d.stringArgument(args, fileArguments)
	searches := containsAny(name, "grep", "glob", "search", "find", "list", "ls")
	command := d.stringArgument(args, commandArguments)
	switch {
	case path != "" && !searches:
		d.touch(path, containsAny(name+" "+command, "write", "edit", "create", "insert", "replace", "patch", "delete",
			"move", "rename") && command != "view")
	case command != "":
		d.run(command, failed)
	case len(patched) == 0:
		d.run(p.Name+" "+p.Input, failed)
	}
}

// patchedFiles returns the files named in a patch of the kind that begins "*** Begin Patch".
func (d *digest) patchedFiles(input string, args map[string]json.RawMessage) []string {
	if !strings.Contains(input, "*** Begin Patch") {
		return nil
	}
	if patch := d.stringArgument(args, []string{"input", "patch", "patchText", "command", "cmd"}); patch != "" {
		input = patch
	}
	var paths []string
	for line := range strings.Lines(input) {
		d.spend(len(line))
		for _, head := range []string{"*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "} {
			if path, found := strings.CutPrefix(strings.TrimSpace(line), head); found {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// stringArgument returns the first of the named arguments that is a string or a list of strings. A list is one command
// line; of a shell with its script, only the script.
func (d *digest) stringArgument(args map[string]json.RawMessage, names []string) string {
	for _, name := range names {
		var text string
		if d.decode(args[name], &text) == nil && text != "" {
			return text
		}
		var list []string
		if d.decode(args[name], &list) == nil && len(list) > 0 {
			if len(list) == 3 && strings.HasPrefix(list[1], "-") && strings.HasSuffix(list[1], "c") {
				return list[2]
			}
			return strings.Join(list, " ")
		}
	}
	return ""
}

func containsAny(s string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(s, word) })
}

// touch records a file as the last one touched.
func (d *digest) touch(path string, changed bool) {
	path = oneLine(path)
	d.changed[path] = d.changed[path] || changed
	d.files.add(path)
}

// run records a command as the last one run.
func (d *digest) run(command string, failed bool) {
	command = oneLine(command)
	if failed {
		command += failedNote
	}
	d.commands.add(command)
}

const (
	failedNote  = " (failed)"
	changedNote = " (changed)"
)
