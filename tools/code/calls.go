package code

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"

	"go.starlark.net/starlark"
)

// toolError is a failed call as a value.
type toolError struct{ reply }

var _ starlark.HasAttrs = (*toolError)(nil)

// String returns the text that the model would get.
func (e *toolError) String() string { return "ToolError(" + string(quoted(e.Error)) + ")" }

// Type returns ToolError.
func (e *toolError) Type() string { return "ToolError" }

// Freeze does nothing, because a toolError is immutable.
func (e *toolError) Freeze() {}

// Truth returns true, as for errors in Python.
func (e *toolError) Truth() starlark.Bool { return true }

// Hash returns the hash of the text.
func (e *toolError) Hash() (uint32, error) {
	h := fnv.New32a()
	h.Write([]byte(e.Error))
	return h.Sum32(), nil
}

// Attr returns tool, outcome or message.
func (e *toolError) Attr(name string) (starlark.Value, error) {
	switch name {
	case "tool":
		return starlark.String(e.Tool), nil
	case "outcome":
		return starlark.String(e.Outcome), nil
	case "message":
		return starlark.String(e.Error), nil
	}
	return nil, nil
}

// AttrNames returns the names that Attr accepts.
func (e *toolError) AttrNames() []string { return []string{"message", "outcome", "tool"} }

func noToolError(*embeddedRun, *starlark.Thread, starlark.Tuple, []starlark.Tuple) (starlark.Value, error) {
	return nil, errors.New("ToolError is what a failed call gives; fail(text) ends the program")
}

// callTool implements call_tool(name, args). A failed call ends the program.
func callTool(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value,
	error) {
	v, err := r.one("call_tool", args, kwargs)
	if e, ok := v.(*toolError); ok {
		return nil, errors.New("ToolError: " + e.Error)
	}
	return v, err
}

// tryCall implements try_call(name, args).
func tryCall(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	v, err := r.one("try_call", args, kwargs)
	if err != nil {
		return nil, err
	}
	d := starlark.NewDict(3)
	if e, ok := v.(*toolError); ok {
		d.SetKey(starlark.String("ok"), starlark.False)
		d.SetKey(starlark.String("error"), starlark.String(e.Error))
		d.SetKey(starlark.String("outcome"), starlark.String(e.Outcome))
		return d, nil
	}
	d.SetKey(starlark.String("ok"), starlark.True)
	d.SetKey(starlark.String("value"), v)
	return d, nil
}

func (r *embeddedRun) one(what string, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value, error) {
	if len(args) == 0 || len(args) > 2 {
		return nil, fmt.Errorf("%s takes the tool's name and its arguments as a dict", what)
	}
	var given starlark.Value = starlark.None
	if len(args) == 2 {
		given = args[1]
	}

	// Keywords are arguments of the tool too. They replace members of the dict.
	if len(kwargs) > 0 {
		d := starlark.NewDict(8)
		if old, ok := given.(*starlark.Dict); ok {
			for _, kv := range old.Items() {
				d.SetKey(kv[0], kv[1])
			}
		}
		for _, kv := range kwargs {
			d.SetKey(kv[0], kv[1])
		}
		given = d
	}

	c, err := r.request(what, args[0], given)
	if err != nil {
		return nil, err
	}
	vs, err := r.do([]request{c})
	if err != nil {
		return nil, err
	}
	return vs[0], nil
}

// callTools implements call_tools_parallel([(name, args), …]).
func callTools(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	const what = "call_tools_parallel"
	var list starlark.Iterable
	if len(args) == 1 {
		list, _ = args[0].(starlark.Iterable)
	}
	if list == nil {
		return nil, errors.New(what + " takes a list of (name, args)")
	}
	items, err := r.gathered(list)
	if err != nil {
		return nil, err
	}

	// All are checked before the first is executed: a fault in the list has no effect.
	calls := make([]request, len(items))
	for i, item := range items {
		name, given := nameAndArgs(item)
		if name == nil {
			return nil, errors.New(what + " takes a list of (name, args)")
		}
		calls[i], err = r.request(what, name, given)
		if err != nil {
			return nil, err
		}
	}
	vs, err := r.do(calls)
	return starlark.NewList(vs), err
}

// nameAndArgs reads (name, args), (name,), or a dict with these keys. A nil name means that item is
// none of them.
func nameAndArgs(item starlark.Value) (name, args starlark.Value) {
	args = starlark.None
	switch x := item.(type) {
	case *starlark.Dict:
		name, _, _ = x.Get(starlark.String("name"))
		if v, ok, _ := x.Get(starlark.String("args")); ok {
			args = v
		}

	case starlark.String: // Indexable too, and no pair

	case starlark.Indexable:
		switch x.Len() {
		case 1:
			name = x.Index(0)
		case 2:
			name = x.Index(0)
			args = x.Index(1)
		}
	}
	return name, args
}

func (r *embeddedRun) request(what string, name, given starlark.Value) (c request, err error) {
	var ok bool
	c.Name, ok = starlark.AsString(name)
	if !ok {
		return c, fmt.Errorf("%s: the tool's name is text, not %s", what, name.Type())
	}
	c.Args = json.RawMessage("{}")
	if given != starlark.None {
		c.Args, err = r.form(what, given)
	}
	if len(c.Args) > maxFrame {
		r.why = tooLarge
		return c, fmt.Errorf("%s: the arguments have %d bytes, at most %d can be sent", what, len(c.Args), maxFrame)
	}
	return c, err
}

// form returns a value as the JSON that tools and the model get.
func (r *embeddedRun) form(what string, v starlark.Value) (json.RawMessage, error) {
	n, err := weight(v)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if err := r.takes(n); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := (&jsonWriter{out: &b, comma: ",", colon: ":"}).write(v, 0); err != nil {
		return nil, fmt.Errorf("%s takes a value with a JSON form (dict with text keys, list, text, number, "+
			"True, False, None): %w", what, err)
	}
	return b.Bytes(), nil
}

func (r *embeddedRun) do(calls []request) ([]starlark.Value, error) {
	if len(calls) == 0 {
		return nil, nil
	}
	replies, ok := r.host.do(r.ctx, calls)
	if !ok {
		r.why = killed // the host reports the reason
		return nil, errors.New("the program is ended")
	}
	vs := make([]starlark.Value, len(replies))
	for i, x := range replies {
		if x.Error != "" {
			vs[i] = &toolError{x}
			continue
		}
		v, err := r.read(x.Value)
		if err != nil {
			return nil, fmt.Errorf("the result of %s: %w", calls[i].Name, err)
		}
		vs[i] = v
	}
	return vs, nil
}

// setResult implements set_result(x).
func setResult(r *embeddedRun, _ *starlark.Thread, args starlark.Tuple, kwargs []starlark.Tuple) (starlark.Value,
	error) {
	if len(args) != 1 || len(kwargs) > 0 {
		return nil, errors.New("set_result takes one value")
	}
	b, err := r.form("set_result", args[0])
	if err != nil {
		return nil, err
	}
	if len(b) > r.prog.output {
		r.why = tooLarge
		return nil, fmt.Errorf("the result has %d bytes as JSON, and at most %d are returned; set what matters of it",
			len(b), r.prog.output)
	}
	r.result = b
	if args[0] == starlark.None {
		r.result = nil
	}
	return starlark.None, nil
}
