package pawl

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"
	"time"

	infer "github.com/google/jsonschema-go/jsonschema"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/llm"
)

// Tool is something the model may call. Fill in a literal, or let Func make one from a typed function.
//
// A Tool is a Toolset of one. It may be used by many runs at once and must not be changed or copied after its
// first use; Clone makes a copy that may be changed.
type Tool struct {
	Name        string          // what the model calls it; letters, digits and underscores travel to every provider unchanged
	Description string          // what it does and when to use it, written for the model
	Input       json.RawMessage // JSON Schema of the arguments (2020-12, or the draft its $schema names); nil: an object without properties
	Output      json.RawMessage // JSON Schema of ToolResult.Data; nil: not stated

	// Run carries out a call whose arguments fit Input. What the model should read, business errors included, is a result; an
	// error is told to the model too, unless it is Abort, Finish or Retryable. Run must end when ctx does.
	Run ToolFunc

	Deferred  bool          // with tool_search among the tools (Search): not offered before a search has found it, or the conversation has a call of it; it can be called at any time
	Passive   bool          // the caller of the run carries out the call: it pends, validated, and Run is not used
	Effect    Effect        // what a call may do to the world
	Inline    bool          // with Compose: Run goes by its arguments and by what its calls came to, and by no clock, file or goroutine: so it may run inside a workflow that is replayed
	Timeout   time.Duration // for one attempt; 0: 60 s; negative: none
	NoRepair  bool          // arguments that nearly fit are refused, where else they are mended when they can mean one thing only
	MaxResult int           // bytes of text told to the model, head and tail of longer ones; 0: 32 KiB; negative: no bound

	// Serial, when not nil, gives calls a key from their arguments: calls of one step with the same key run one after
	// another, in call order. "" means no key.
	Serial func(args json.RawMessage) string

	// Reconcile, when not nil, says what became of a call that was begun and interrupted, so that nobody need be asked: it looks in the world, by the
	// key that Invocation.IdempotencyKey gives for one. It returns the call's result if it happened, nil if it did not (then it may run, once more approved),
	// and an error while that cannot be found out: then somebody is asked. It is used for Write alone.
	Reconcile func(ctx context.Context, call llm.ToolCall) (*llm.ToolResult, error)

	agent *Agent // what Agent.Tool made it of

	spec struct {
		once sync.Once
		is   *llm.ToolSpec
	}

	compiled struct {
		once   sync.Once
		schema *schema.Schema
		err    error
	}
	canonical struct { // Input
		once sync.Once
		text []byte
	}
}

// ToolFunc carries out a call. It is also what tool middleware wraps.
type ToolFunc func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error)

// Effect says what a call may do to the world. It decides what may be retried, cached, started early, or repeated
// after a crash.
type Effect int

// The effects. Unknown means Write.
const (
	EffectWrite      Effect = iota // may change the world; never repeated in silence
	EffectIdempotent               // may change the world, but twice is as good as once
	EffectRead                     // looks at the world
	EffectPure                     // depends on its arguments alone
	EffectCompose                  // acts only through its Invocation: plans, code, agents
)

// String returns write, idempotent, read, pure or compose.
func (e Effect) String() string {
	if e < EffectWrite || e > EffectCompose {
		return fmt.Sprintf("Effect(%d)", int(e))
	}
	return [...]string{"write", "idempotent", "read", "pure", "compose"}[e]
}

// MarshalText writes what String returns.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (e *Effect) UnmarshalText(b []byte) error {
	for f := EffectWrite; f <= EffectCompose; f++ {
		if f.String() == string(b) {
			*e = f
			return nil
		}
	}
	return fmt.Errorf("unknown effect %q; known: write, idempotent, read, pure, compose", b)
}

// Func makes a tool from a typed function. The input schema is inferred from In, which must be a struct or a map with
// string keys: json tags name the fields, omitempty makes them optional, jsonschema tags describe them. Out may be a
// string (told as it is), a ToolResult (taken as it is), or any value that has a JSON form (told as JSON, and kept as Data with
// its schema as Output). An error is told to the model.
//
// The tool's Effect is Write; set the fields of the returned tool before its first use. Func panics when no schema can
// be inferred from In: that is a mistake in the program.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) *Tool {
	in, err := inferSchema[In]()
	if err != nil {
		panic(fmt.Sprintf("pawl.Func %s: input: %v", name, err))
	}
	t := &Tool{Name: name, Description: description, Input: in}
	data := false
	switch reflect.TypeFor[Out]() {
	case reflect.TypeFor[string](), reflect.TypeFor[llm.ToolResult]():
	default:
		data = true
		if reflect.TypeFor[Out]().Kind() != reflect.Interface {
			if t.Output, err = inferSchema[Out](); err != nil {
				panic(fmt.Sprintf("pawl.Func %s: output: %v", name, err))
			}
		}
	}
	t.Run = func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var args In
		if f := decodeArgs(name, call.Args, &args); f != nil {
			return llm.ToolResult{}, f
		}
		out, err := fn(ctx, args)
		if err != nil {
			return llm.ToolResult{}, err
		}
		if data {
			b, err := json.Marshal(out)
			if err != nil {
				return llm.ToolResult{}, fmt.Errorf("result has no JSON form: %w", err)
			}
			return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: string(b)}}, Data: b}, nil
		}
		switch out := any(out).(type) {
		case llm.ToolResult:
			return out, nil
		case string:
			return llm.TextResult(out), nil
		}
		panic("unreachable")
	}
	if err := t.Check(); err != nil {
		panic(fmt.Sprintf("pawl.Func: %v", err))
	}
	return t
}

// decodeArgs decodes arguments that fit the schema into a Go value; the failure is worded for the model.
func decodeArgs(tool string, args json.RawMessage, into any) *failure {
	err := jsonform.Decode(args, into)
	if err == nil {
		return nil
	}
	return &failure{outcome: OutcomeInvalid, text: "The arguments of " + tool + " cannot be used: " + jsonform.DecodeText(err), err: err}
}

func inferSchema[T any]() (json.RawMessage, error) {
	s, err := infer.For[T](nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// Tools returns t alone, which makes a Tool a Toolset.
func (t *Tool) Tools(context.Context) ([]*Tool, error) { return []*Tool{t}, nil }

// Clone returns a copy that may be changed until its first use.
func (t *Tool) Clone() *Tool {
	return &Tool{Name: t.Name, Description: t.Description, Input: t.Input, Output: t.Output, Run: t.Run, Passive: t.Passive,
		Effect: t.Effect, Deferred: t.Deferred, Timeout: t.Timeout, NoRepair: t.NoRepair, MaxResult: t.MaxResult, Serial: t.Serial, Reconcile: t.Reconcile,
		Inline: t.Inline, agent: t.agent}
}

// Agent returns the agent that t was made of by Agent.Tool: read only. It is nil for other tools.
func (t *Tool) Agent() *Agent { return t.agent }

// Check reports whether t can be offered to a model: it has a name, its input is a JSON Schema that describes an object,
// and it has a function to run or is passive. The schema is compiled once, here or at the first use.
func (t *Tool) Check() error {
	switch {
	case t.Name == "":
		return fmt.Errorf("a tool has no name")
	case t.Run == nil && !t.Passive:
		return fmt.Errorf("tool %s has neither Run nor Passive", t.Name)
	}
	_, err := t.schema()
	return err
}

func (t *Tool) schema() (*schema.Schema, error) {
	t.compiled.once.Do(func() {
		t.compiled.schema, t.compiled.err = schema.Compile(t.Input)
		if t.compiled.err != nil {
			t.compiled.err = fmt.Errorf("tool %s: input schema: %w", t.Name, t.compiled.err)
		}
	})
	return t.compiled.schema, t.compiled.err
}

// meant returns args as a call of t would be run with them.
func (t *Tool) meant(args json.RawMessage) json.RawMessage {
	if s, err := t.schema(); err == nil && !t.NoRepair && len(args) > 0 {
		args, _, _, _ = s.Read(args, true)
	}
	return args
}

// Spec returns what a model is told about t, with t as its Source. It is the same pointer at each call,
// so adapters can cache what they make of it. t must not be changed afterwards.
func (t *Tool) Spec() *llm.ToolSpec {
	t.spec.once.Do(func() {
		t.spec.is = &llm.ToolSpec{Name: t.Name, Description: t.Description, Input: t.Input, Output: t.Output,
			Deferred: t.Deferred, NoRepair: t.NoRepair, Source: t}
	})
	return t.spec.is
}

// specs returns what a model is told about tools.
func specs(tools []*Tool) []*llm.ToolSpec {
	if len(tools) == 0 {
		return nil
	}
	all := make([]*llm.ToolSpec, len(tools))
	for i, t := range tools {
		all[i] = t.Spec()
	}
	return all
}

// Validate returns nil if a call of t with args would be executed; see ToolSpec.Validate.
func (t *Tool) Validate(args json.RawMessage) error { return t.Spec().Validate(args) }
