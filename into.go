package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/llm"
)

// OutputRunner is a Runner whose answer can be held to a JSON Schema, as an Agent's can. WithOutput returns a Runner that does the same work and
// ends with a Result whose Output fits schema; the receiver stays as it is, and what it had for an output before gives way.
type OutputRunner interface {
	Runner
	WithOutput(schema json.RawMessage) Runner
}

var _ OutputRunner = (*Agent)(nil)

// WithOutput returns a copy of a with Output set to schema.
func (a *Agent) WithOutput(schema json.RawMessage) Runner {
	b := *a
	b.Output = schema
	return &b
}

// Into carries out the task in msgs and returns the answer as a T: the model is held to the schema of T, which is inferred as Func
// infers that of arguments, what it answers is checked in full, and what does not fit is sent back to it (Limits.Corrections). Replies are asked for
// whole where r is an *Agent.
//
// r must be an OutputRunner. The error is that of the run; *OutputError says that the answer does not fit, or that the run stopped without one (calls
// pend, a limit was reached): the Result says which, and can be resumed. When a limit was reached and there is an answer all the same, both are returned.
// Into panics if no schema can be inferred from T.
func Into[T any](ctx context.Context, r Runner, msgs ...llm.Message) (T, *Result, error) {
	var in struct {
		Value T `json:"value"`
	}
	o, ok := r.(OutputRunner)
	if !ok {
		return in.Value, nil, fmt.Errorf("%T cannot be held to an output: it has no method WithOutput", r)
	}
	schema := SchemaFor[T]()
	wrapped := !describesObject(schema)
	if wrapped { // providers want an object
		schema = json.RawMessage(`{"type":"object","properties":{"value":` + string(schema) + `},"required":["value"],"additionalProperties":false}`)
	}
	res, err := drained(ctx, o.WithOutput(schema), msgs)
	if res == nil || res.Output == nil {
		if err == nil {
			err = &OutputError{Result: res}
			if res != nil {
				err = &OutputError{Text: res.Text(), Result: res}
			}
		}
		return in.Value, res, err
	}
	into := any(&in.Value)
	if wrapped {
		into = &in
	}
	if wrong := decodeArgs(answerTool, res.Output, into); wrong != nil && err == nil {
		err = &OutputError{Text: string(res.Output), Faults: []string{strings.TrimPrefix(wrong.text, "The arguments of "+answerTool+" cannot be used: ")}, Result: res}
	}
	if err == nil && res.Stop != StopAnswer && res.Stop != StopFinished {
		err = &OutputError{Text: string(res.Output), Result: res}
	}
	return in.Value, res, err
}

// SchemaFor returns the JSON Schema of T, for Agent.Output: the same as Func makes for arguments, with the jsonschema tags of its fields as descriptions. It
// panics if none can be inferred, since that is a mistake in the program's text.
func SchemaFor[T any]() json.RawMessage {
	s, err := inferSchema[T]()
	if err != nil {
		panic(fmt.Sprintf("pawl.SchemaFor: %v", err))
	}
	return s
}

func describesObject(schema json.RawMessage) bool {
	var head struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(schema, &head) == nil && head.Type == "object"
}

// drained runs r to its end.
func drained(ctx context.Context, r Runner, msgs []llm.Message) (res *Result, err error) {
	if a, ok := r.(*Agent); ok {
		return a.Run(ctx, msgs...)
	}
	var run llm.Key
	for e, failed := range r.Stream(ctx, msgs...) {
		if failed != nil {
			return res, failed
		}
		if run == "" {
			run = e.Run
		}
		if e.Kind == EventRunEnded && e.Run == run {
			res = e.Result
		}
	}
	return res, nil
}
