package demomodel

import (
	"strings"

	"github.com/pawl-go/pawl/script"
)

// coding.go: the rules of coding, and of its subagent finder.

var (
	replaced = expression("(?is)\\breplace\\s+[\"'`](.+?)[\"'`]\\s+(?:with|by)\\s+[\"'`](.*?)[\"'`]\\s+in\\s+([\\w./-]+)")
	tested   = expression(`(?i)\btests?\b`)
)

// playCoding edits a file, runs the tests, and searches with its subagent.
func playCoding(t *talk) script.Turn {
	m := replaced().FindStringSubmatch(t.task)
	switch {
	case !t.offers("shell_exec"): // it is the finder, whose answer coder passes on
		t.first = false
		return t.search(subject(t.task))
	case m != nil:
		return t.edit(m[3], m[1], m[2])
	case tested().MatchString(t.task):
		return t.test()
	case searched().MatchString(t.task) && t.offers("finder"):
		return t.delegate()
	}
	return t.repository()
}

// edit replaces a text in a file.
func (t *talk) edit(name, old, replacement string) script.Turn {
	done := t.results("file_edit")
	if done == nil {
		change := []map[string]string{{"old": old, "new": replacement}}
		return script.Call("file_edit", map[string]any{"path": name, "edits": change})
	}
	if done[0].result.IsError {
		return t.stopped(done[0])
	}
	return t.say("%s is changed; `pawl undo` restores it:\n\n> %s", name, quote(done[0].result.Text(), 8))
}

// test runs the tests, with a list of what is to be done.
func (t *talk) test() script.Turn {
	ran := t.results("shell_exec")
	switch {
	case !t.called("todo"):
		return t.plan("doing")
	case ran == nil:
		return script.Call("shell_exec", map[string]any{"command": "go test ./...", "timeout": 120})
	case len(t.results("todo")) == 1:
		return t.plan("done")
	}

	verdict := "The tests pass"
	if ran[0].result.IsError {
		verdict = "The tests do not pass. A real model would now read the code; my rules end here"
	}
	return t.say("%s:\n\n```\n%s\n```", verdict, strings.TrimSpace(ran[0].result.Text()))
}

// plan writes the list with its one line in a state.
func (t *talk) plan(state string) script.Turn {
	line := map[string]string{"text": "Run the tests.", "state": state}
	return script.Call("todo", map[string]any{"items": []map[string]string{line}})
}

// delegate asks the finder.
func (t *talk) delegate() script.Turn {
	found := t.results("finder")
	if found == nil {
		return script.Call("finder", map[string]string{"task": t.task})
	}
	return t.say("%s", found[0].result.Text())
}

// repository describes the repository.
func (t *talk) repository() script.Turn {
	if !t.called("git_status") {
		return script.Together(script.Call("git_status", nil), script.Call("file_list", nil))
	}
	var parts []string
	for _, e := range t.done {
		parts = append(parts, e.call.Name+":\n\n```\n"+strings.TrimSpace(e.result.Text())+"\n```")
	}
	return t.say("%s\n\nMy rules know `run the tests`, `where is \"a text\"?` and `replace \"a\" with \"b\" in FILE`.",
		strings.Join(parts, "\n\n"))
}
