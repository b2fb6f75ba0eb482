package demomodel

import (
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/script"
)

// research.go: the rules of research, and of its subagents scout and critic.

// address finds addresses of pages, with or without a scheme.
var address = expression(`\b(?:https?://)?(?:[a-z0-9-]+\.)+(?:com|org|net|dev|io|edu|gov|eu|de)(?:/[\w./-]*\w)?`)

// playResearch asks the subagents and writes a report.
func playResearch(t *talk) script.Turn {
	switch {
	case t.offers("http_fetch"):
		return t.scout()
	case !t.offers("scout"):
		return t.criticise()
	}

	found := t.results("scout")
	judged := t.results("critic")
	saved := t.results("file_write")
	switch {
	case found == nil:
		return script.Call("scout", map[string]string{"task": t.task})
	case judged == nil:
		return script.Call("critic", map[string]string{"task": found[0].result.Text()})
	case saved == nil:
		report := fmt.Sprintf("# %s\n\n## Findings\n\n%s\n\n## Review\n\n%s\n", t.task,
			found[0].result.Text(), judged[0].result.Text())
		return script.Call("file_write", map[string]string{"path": "report.md", "content": report})
	case saved[0].result.IsError:
		return t.stopped(saved[0])
	}
	return t.say("The report is in report.md. The scout says:\n\n> %s", quote(found[0].result.Text(), 6))
}

// scout reads the pages whose addresses stand in the task.
func (t *talk) scout() script.Turn {
	pages := address().FindAllString(t.task, mostRead)
	if len(pages) == 0 {
		return script.Say("The task names no address, and my rules cannot search the web. Name one, such as go.dev.")
	}
	if !t.called("http_fetch") {
		return each(pages, func(page string) script.Turn {
			if !strings.Contains(page, "://") {
				page = "https://" + page
			}
			return script.Call("http_fetch", map[string]any{"url": page, "max_chars": 600})
		})
	}

	var parts []string
	for i, e := range t.results("http_fetch") {
		state := "says"
		if e.result.IsError {
			state = "could not be read"
		}
		parts = append(parts, fmt.Sprintf("%s %s:\n> %s", pages[i%len(pages)], state, quote(e.result.Text(), 8)))
	}
	return script.Say(strings.Join(parts, "\n\n"))
}

// criticise reports what has no source.
func (t *talk) criticise() script.Turn {
	sources := address().FindAllString(t.task, -1)
	switch {
	case len(sources) == 0:
		return script.Say("No claim has a source.")
	case strings.Contains(t.task, "could not be read"):
		return script.Say("A page could not be read: nothing is known of what it says.")
	}
	return script.Say(fmt.Sprintf("Sources: %s. My rules compare no claims with them.", strings.Join(sources, ", ")))
}
