package code

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
)

// outcome is the way in which a program ended, from a closed list that docs/code.md repeats.
type outcome string

const (
	ok       outcome = "ok"        // it ended and set a result
	noResult outcome = "no_result" // it ended and set no result
	syntax_  outcome = "syntax"    // its text is not a valid program; nothing was run
	failed   outcome = "error"     // it failed in a line
	// it exited with a status that is not 0, or without reporting its end
	exited    outcome = "exited"
	killed    outcome = "killed"    // a signal ended it
	timeout   outcome = "timeout"   // its time limit was reached
	steps     outcome = "steps"     // embedded: its step limit was reached
	memory    outcome = "memory"    // its memory limit was reached
	tooLarge  outcome = "too_large" // its result, or the arguments of a call, are too large to send
	tooMany   outcome = "calls"     // it made more calls than allowed
	forged    outcome = "forged"    // it wrote to the tool's descriptors
	diverged  outcome = "diverged"  // executed again, it made a different call than before
	refused   outcome = "refused"   // the interpreter is not available here
	cancelled outcome = "cancelled" // the run ended; the model gets no result
)

// ended describes how a program ended, and its result.
type ended struct {
	outcome outcome
	// for the model: what happened and what to do; empty if the outcome is ok
	message string
	line    int             // line of the failure; 0 means unknown
	result  json.RawMessage // nil means that no result was set
	logs    logs
	cause   error // why no program was run, for errors.Is; nil means that one was
}

// logs holds the output of print: all of it, or its head and tail.
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

// forModel returns the text for the model: how the program ended if it failed, its result, and its
// logs.
func (e ended) forModel(h *host, p program) llm.ToolResult {
	if e.outcome == ok && e.result == nil {
		e.outcome = noResult
		e.message = "The program ended and set no result. Call set_result(x) with what you want to know."
	}
	bad := e.outcome != ok && e.outcome != noResult

	var parts []string
	if e.message != "" {
		parts = append(parts, clip(e.message, 4<<10))
	}
	// The model must know which calls have been made before it writes the program again.
	if bad && len(h.made) > 0 {
		parts = append(parts, h.done())
	}
	if e.result != nil {
		result := string(e.result)
		if bad {
			result = "It had set this result:\n" + result
		}
		parts = append(parts, result)
	}
	said := strings.Join(parts, "\n")

	// The logs get what the rest leaves, but never nothing.
	room := max(p.output-len(said)-64, p.output/16)
	shown := text.Middle(strings.TrimSuffix(e.logs.text, "\n"), room)
	if shown != "" {
		said += "\n--- logs ---\n" + shown
	}
	res := llm.TextResult(said)
	if bad {
		res = llm.ErrorResult(said)
	}

	d := endedData{
		Outcome: e.outcome,
		Result:  e.result,
		Error:   e.message,
		Line:    e.line,
		Logs:    shown,
		Bytes:   e.logs.bytes,
		Calls:   h.made,
	}
	if d.Calls == nil {
		d.Calls = []madeCall{}
	}
	if b, err := json.Marshal(d); err == nil {
		res.Data = b
	}
	return res
}

// done lists the calls that were made before the program ended.
func (h *host) done() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of its calls had been made, and stay made: ", len(h.made))
	for i := 0; i < len(h.made) && i < 20; { // equal calls in a row are one entry
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

// inLine describes a failure in a line of the program and quotes the line.
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

// clip shortens s to n bytes, at a character boundary.
func clip(s string, n int) string { return strings.ToValidUTF8(text.Clip(s, n), "\uFFFD") }

// logsOf returns the stored output of a program.
func logsOf(kept *text.Ends) logs {
	head := string(kept.Head)
	tail := kept.Tail()
	if left := kept.Bytes - int64(len(head)+len(tail)); left > 0 {
		head += fmt.Sprintf("\n[… %d bytes left out …]\n", left)
	}
	return logs{head + string(tail), kept.Bytes}
}
