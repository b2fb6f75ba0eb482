package react

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonrepair"
)

// candidate is a piece of a text that may be JSON.
type candidate struct {
	start int
	value json.RawMessage
	notes []string
}

// maxFailed bounds how often reading JSON is tried in one text, so that no text takes long.
const maxFailed = 64

// candidates returns the outermost objects and lists in text, repaired ones included, in order.
func candidates(text string) []candidate {
	var out []candidate
	failed := 0 // each costs a look at the rest of the text
	for i := 0; i < len(text) && failed < maxFailed; i++ {
		if text[i] != '{' && text[i] != '[' {
			continue
		}
		n := jsonrepair.Balanced(text[i:], "{[", "}]")
		if n == 0 {
			failed++
			continue
		}
		value, notes, ok := repaired([]byte(text[i : i+n]))
		if !ok {
			failed++
			continue
		}
		out = append(out, candidate{i, value, notes})
		if len(out) == maxFailed {
			return out
		}
		i += n - 1
	}

	// An object that never ends has no balanced part.
	if i := strings.IndexAny(text, "{["); len(out) == 0 && i >= 0 {
		if fixed, notes, err := jsonrepair.Repair([]byte(text)); err == nil && fixed[0] == '{' {
			out = append(out, candidate{i, fixed, notes})
		}
	}
	return out
}

// repaired returns raw as valid JSON. ok is false if it is no object or list, even with repairs.
func repaired(raw []byte) (value json.RawMessage, notes []string, ok bool) {
	if json.Valid(raw) {
		return raw, nil, true
	}
	fixed, notes, err := jsonrepair.Repair(raw)
	if err != nil {
		return nil, nil, false
	}
	return fixed, notes, fixed[0] == '{' || fixed[0] == '['
}

// readJSON finds the first decision in text and its start; -1 means that there is none.
func readJSON(text string) (at int, d Decision, err error) {
	at = -1
	var odd Decision // reads as a decision, but of no known type
	for _, c := range candidates(text) {
		got, ok := decisionOf(c.value)
		if !ok {
			continue
		}
		got.Notes = append(c.notes, got.Notes...)
		switch got.Type {
		case CallTool, FinalAnswer:
			return c.start, got, nil
		}
		if at < 0 {
			at = c.start
			odd = got
		}
	}
	return at, odd, nil
}

// readForm reads a decision in a custom form: the first JSON value in text that the form can read.
func readForm(text string, f *Form) (Decision, error) {
	_, text = cutThinking(text)
	var first error
	for _, c := range candidates(text) {
		d, err := f.Read(c.value)
		if err == nil {
			d.Notes = append(c.notes, d.Notes...)
			return d, nil
		}
		// The first error is about the text that the model most likely meant as its decision.
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = errors.New("the reply holds no JSON that can be read")
	}
	return Decision{}, first
}

// The names that models use for the five fields, ours first.
var (
	typeNames    = []string{"type"}
	thoughtNames = []string{"thought", "thoughts", "reasoning"}
	toolFields   = []string{"tool", "action", "tool_name", "name"}
	argsNames    = []string{"args", "action_input", "arguments", "tool_input", "input", "parameters"}
	answerNames  = []string{"answer", "final_answer"}
	callsNames   = []string{"calls", "tool_calls", "actions"}
)

// decisionOf reads value as a decision in the five fields, or by the names of other runtimes. ok is
// false if it is no decision.
func decisionOf(value []byte) (d Decision, ok bool) {
	value = []byte(strings.TrimSpace(string(value)))
	if len(value) > 0 && value[0] == '[' {
		return listOf(value)
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(value, &fields) != nil || fields == nil {
		return d, false
	}

	stated := pick(fields, typeNames)
	tool := pick(fields, toolFields)
	args := pick(fields, argsNames)
	answer := pick(fields, answerNames)
	calls := pick(fields, callsNames)
	// An object with a name and no arguments is more often data than a call.
	if tool.name == "name" && args.name == "" {
		tool = field{}
	}
	if stated.name+tool.name+answer.name+calls.name == "" {
		return d, false
	}

	d.Thought = strings.TrimSpace(textOf(pick(fields, thoughtNames).value))
	d.Tool = strings.TrimSpace(textOf(tool.value))
	d.Answer = textOf(answer.value)
	d.Type = Type(strings.ToLower(strings.TrimSpace(textOf(stated.value))))
	isCall := d.Tool != "" || len(calls.value) > 0 && string(calls.value) != "null"
	switch {
	case d.Type == CallTool, d.Type == FinalAnswer:
	// A stated type that is unknown is a decision with a fault, which the model can repair. The
	// echo of the schema in the prompt is none.
	case stated.name != "":
		schema := !isCall && answer.name == "" && fields["properties"] != nil // said again
		d.Type = Type(textOf(stated.value))
		return d, !schema
	case strings.EqualFold(d.Tool, "final answer"), strings.EqualFold(d.Tool, "final_answer"):
		d.Type = FinalAnswer
		d.Answer = textOf(args.value)
	case isCall && strings.TrimSpace(d.Answer) == "":
		d.Type = CallTool
	case !isCall && answer.name != "":
		d.Type = FinalAnswer
	}

	// Fields of the other kind are noise: models fill all fields that the schema shows.
	if d.Type != CallTool {
		d.Tool = ""
		return d, true
	}
	d.Answer = ""
	d.Args = args.value
	d.addCalls(calls.value)
	return d, true
}

// field is a field of a decision. The zero value means that it is not there.
type field struct {
	name  string
	value json.RawMessage
}

// pick returns the first of the fields with one of the names.
func pick(fields map[string]json.RawMessage, names []string) field {
	for _, name := range names {
		if value, ok := fields[name]; ok {
			return field{name, value}
		}
	}
	return field{}
}

// addCalls adds the calls in a list to d, which may have the first of them.
func (d *Decision) addCalls(calls json.RawMessage) {
	var list []json.RawMessage
	if json.Unmarshal(calls, &list) != nil {
		return
	}
	all := d.calls()
	for i, raw := range list {
		c, _ := decisionOf(unwrapFunction(raw))
		if i == 0 && c.Tool == d.Tool && string(c.Args) == string(d.Args) {
			continue // said twice, as tool and among calls
		}
		// calls returns an empty call if d has none.
		if d.Tool == "" && i == 0 {
			all = nil
		}
		all = append(all, Call{c.Tool, c.Args})
	}
	if len(all) > 0 {
		d.setCalls(all)
	}
}

// listOf reads a list of calls as one decision.
func listOf(value []byte) (d Decision, ok bool) {
	var list []json.RawMessage
	if json.Unmarshal(value, &list) != nil || len(list) == 0 {
		return d, false
	}
	for i, raw := range list {
		c, ok := decisionOf(unwrapFunction(raw))
		// Several decisions in one list are calls only if each is one. An answer among them would
		// rest on results that do not exist.
		alone := len(list) == 1 || c.Type == CallTool
		if !ok || raw[0] == '[' || !alone {
			return Decision{}, false
		}
		if i == 0 {
			d = c
		} else {
			d.More = append(d.More, Call{c.Tool, c.Args})
		}
	}
	return d, true
}

// unwrapFunction takes {"function":{"name","arguments"}} apart.
func unwrapFunction(raw json.RawMessage) json.RawMessage {
	var w struct {
		Function json.RawMessage `json:"function"`
	}
	if json.Unmarshal(raw, &w) == nil && len(w.Function) > 0 && w.Function[0] == '{' {
		return w.Function
	}
	return raw
}

// textOf returns the text of a JSON string, and any other value but null as JSON.
func textOf(v json.RawMessage) string {
	var s string
	if len(v) == 0 || string(v) == "null" {
		return ""
	}
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(compact(v))
}
