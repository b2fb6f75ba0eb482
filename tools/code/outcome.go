package code

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// outcome is how a program ended, from a closed list; docs/code.md has it too.
type outcome string

const (
	ok        outcome = "ok"        // it ended and had set a result
	noResult  outcome = "no_result" // it ended and had set none
	syntax_   outcome = "syntax"    // it is no program; nothing was run
	failed    outcome = "error"     // it failed, in a line
	exited    outcome = "exited"    // it ended itself with a status that is not 0, or without its end being told
	killed    outcome = "killed"    // a signal ended it
	timeout   outcome = "timeout"   // its time was over
	steps     outcome = "steps"     // embedded: its steps were used up
	memory    outcome = "memory"    // it needs more memory than it may have
	tooLarge  outcome = "too_large" // its result, or the arguments of a call, are larger than can be sent
	tooMany   outcome = "calls"     // it asked for more calls than it may make
	forged    outcome = "forged"    // it spoke on the descriptors of the tool
	diverged  outcome = "diverged"  // begun again, it asked for another call than before
	refused   outcome = "refused"   // the interpreter cannot be had here
	cancelled outcome = "cancelled" // the run ended; no result is told
)

// ended is how a program ended, and what came of it.
type ended struct {
	outcome outcome
	message string          // for the model: what happened and what to do; "": ok
	line    int             // where; 0: not known
	result  json.RawMessage // nil: none was set
	logs    logs
}

// logs is what a program printed: all of it, or head and tail.
type logs struct {
	text  string
	bytes int64
}

type endedData struct {
	Outcome outcome         `json:"outcome"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   string          `json:"error,omitempty"`
	Line    int             `json:"line,omitempty"`
	Logs    string          `json:"logs,omitempty"`
	Bytes   int64           `json:"logs_bytes,omitempty"`
	Calls   []madeCall      `json:"calls"`
}

// told is what a model reads: how the program ended where that was not well, its result, and its logs.
func (e ended) told(h *host, p program) llm.ToolResult {
	if e.outcome == ok && e.result == nil {
		e.outcome, e.message = noResult, "The program ended and set no result. Call set_result(x) with what you want to know."
	}
	bad := e.outcome != ok && e.outcome != noResult
	var parts []string
	if e.message != "" {
		parts = append(parts, clip(e.message, 4<<10))
	}
	if bad && len(h.made) > 0 {
		parts = append(parts, h.done())
	}
	if e.result != nil {
		text := string(e.result)
		if bad {
			text = "It had set this result:\n" + text
		}
		parts = append(parts, text)
	}
	text := strings.Join(parts, "\n")
	shown := headTail(strings.TrimSuffix(e.logs.text, "\n"), max(p.output-len(text)-64, p.output/16))
	if shown != "" {
		text += "\n--- logs ---\n" + shown
	}
	res := llm.TextResult(text)
	if bad {
		res = llm.ErrorResult(text)
	}
	d := endedData{Outcome: e.outcome, Result: e.result, Error: e.message, Line: e.line, Logs: shown, Bytes: e.logs.bytes, Calls: h.made}
	if d.Calls == nil {
		d.Calls = []madeCall{}
	}
	if b, err := json.Marshal(d); err == nil {
		res.Data = b
	}
	return res
}

// done says which calls were made before the program ended.
func (h *host) done() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of its calls had been made, and stay made: ", len(h.made))
	for i := 0; i < len(h.made) && i < 20; {
		n := 1
		for i+n < len(h.made) && h.made[i+n] == h.made[i] {
			n++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", h.made[i].Tool, h.made[i].Outcome)
		if n > 1 {
			fmt.Fprintf(&b, " ×%d", n)
		}
		i += n
	}
	b.WriteString(".")
	return b.String()
}

// inLine words a failure in a line of the program, with the line.
func inLine(code string, line int, verb, what string) string {
	if line <= 0 {
		return fmt.Sprintf("The program %s: %s", verb, what)
	}
	text := fmt.Sprintf("The program %s in line %d: %s", verb, line, what)
	if lines := strings.Split(code, "\n"); line <= len(lines) {
		if l := strings.TrimSpace(lines[line-1]); l != "" {
			text += fmt.Sprintf("\n%5d | %s", line, clip(l, 200))
		}
	}
	return text
}

// clip cuts text that is longer than n bytes, at a character.
func clip(text string, n int) string {
	if len(text) <= n {
		return strings.ToValidUTF8(text, "\uFFFD")
	}
	return strings.ToValidUTF8(text[:n], "") + "…"
}

// headTail keeps the first and the last half of what is longer than n bytes.
func headTail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	half := n / 2
	return fmt.Sprintf("%s\n[… %d bytes left out …]\n%s", strings.ToValidUTF8(text[:half], ""), len(text)-2*half, strings.ToValidUTF8(text[len(text)-half:], ""))
}
