package demomodel

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/pawl-go/pawl/script"
)

// files.go: the rules of minimal, and the rules about files that others share.

var (
	fileName = expression(`\b[\w./-]*\w\.[A-Za-z]\w{0,7}\b`)
	quoted   = expression("[\"'`“]([^\"'`”]+)[\"'`”]")
	written  = expression(`(?is)^(?:please )?(?:write|create|save)\s+(?:a file |the file )?` +
		"[`\"']?([\\w./-]+\\.\\w+)[`\"']?\\s*(?:with|saying|:)?\\s*(.+)$")
	searched = expression(`(?i)\b(?:where|find|search|mentions?|contains?)\b`)
	word     = expression(`[\pL\pN_]{4,}`)
)

// mostRead is the number of files that a rule reads at once.
const mostRead = 3

// playMinimal reads, finds and writes the files of a folder.
func playMinimal(t *talk) script.Turn {
	if m := written().FindStringSubmatch(t.task); m != nil && t.offers("file_write") {
		return t.write(m[1], m[2])
	}
	if names := fileName().FindAllString(t.task, mostRead); names != nil {
		return t.read(names)
	}
	if searched().MatchString(t.task) {
		return t.search(subject(t.task))
	}
	return t.overview()
}

// write writes a file, and reports it.
func (t *talk) write(name, content string) script.Turn {
	done := t.results("file_write")
	if done == nil {
		return script.Call("file_write", map[string]string{"path": name, "content": unquote(content) + "\n"})
	}
	if done[0].result.IsError {
		return t.stopped(done[0])
	}
	return t.say("%s is written. You allowed it; without that, nothing would have changed.", name)
}

// unquote removes the quotes around a text.
func unquote(text string) string {
	if m := quoted().FindStringSubmatch(text); m != nil && m[0] == text {
		return m[1]
	}
	return text
}

// read reads files, and quotes them.
func (t *talk) read(names []string) script.Turn {
	if !t.called("file_read") {
		return each(names, func(name string) script.Turn {
			return script.Call("file_read", map[string]string{"path": name})
		})
	}
	return t.say("%s", t.quotations())
}

// quotations returns the beginning of each file that was read.
func (t *talk) quotations() string {
	var all []string
	for _, e := range t.results("file_read") {
		all = append(all, fmt.Sprintf("**%s**\n\n> %s", pathOf(e), quote(e.result.Text(), 5)))
	}
	return strings.Join(all, "\n\n")
}

// pathOf returns the argument path of a call.
func pathOf(e exchange) string {
	var args struct{ Path string }
	json.Unmarshal(e.call.Args, &args) // the rules wrote it
	return args.Path
}

// search finds the lines with a text.
func (t *talk) search(text string) script.Turn {
	done := t.results("file_search")
	if done == nil {
		return script.Call("file_search", map[string]any{"pattern": text, "literal": true, "ignore_case": true})
	}
	if found := done[0].result; !found.IsError && !strings.HasPrefix(found.Text(), "[no line") {
		return t.say("%q stands here:\n\n```\n%s\n```", text, strings.TrimSpace(found.Text()))
	}
	return t.say("No file here has %q.", text)
}

// subject returns what a question is about: the quoted text, else its longest word.
func subject(task string) string {
	if m := quoted().FindStringSubmatch(task); m != nil {
		return m[1]
	}
	longest := ""
	for _, w := range word().FindAllString(task, -1) {
		if len(w) > len(longest) && !searched().MatchString(w) {
			longest = w
		}
	}
	if longest == "" {
		return task
	}
	return longest
}

// overview lists the folder, and reads the first files.
func (t *talk) overview() script.Turn {
	listed := t.results("file_list")
	if listed == nil {
		return script.Call("file_list", nil)
	}
	if listed[0].result.IsError {
		return t.stopped(listed[0])
	}

	names := readable(listed[0].result.Text())
	if len(names) > 0 && !t.called("file_read") {
		return t.read(names[:min(len(names), mostRead)])
	}
	return t.say("The folder has:\n\n```\n%s\n```\n\n%s\n\nAsk for a file by its name, `find \"a text\"`, or "+
		"`write notes.txt: a text`, which asks you first.", strings.TrimSpace(listed[0].result.Text()), t.quotations())
}

// readable returns the text files of a listing, by their extensions.
func readable(listing string) []string {
	var names []string
	for line := range strings.Lines(listing) {
		kind, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		switch path.Ext(name) {
		case ".md", ".txt", ".csv", ".json", ".jsonl", ".yaml", ".go":
			if kind == "file" {
				names = append(names, name)
			}
		}
	}
	return names
}
