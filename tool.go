package pawl

// tool.go: Tool, ToolFunc, Effect, and Func, which makes tools from Go functions.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/internal/schema"
	"github.com/pawl-go/pawl/internal/schema/gotype"
	"github.com/pawl-go/pawl/llm"
)

// Tool is a function that the model may call. Fill in a literal, or use Func.
//
// A Tool is a Toolset of one. It may serve any number of concurrent runs. Do not change it during a
// run. A change between runs, and a change of a copy, is a new tool: the next run sends and checks
// it with its present fields.
type Tool struct {
	// Letters, digits and underscores reach every provider unchanged.
	Name string
	// What the tool does and when to use it, for the model. "" means that the model has only the
	// name and Input.
	Description string
	// JSON Schema of the arguments (2020-12, or the draft in its $schema). nil means an object
	// without properties.
	Input json.RawMessage
	// JSON Schema of ToolResult.Data. nil means unknown.
	Output json.RawMessage

	// Run executes a call whose arguments fit Input. Content for the model, including failures that
	// the model can handle, is a result. The model also gets the text of an error, unless the error
	// is AbortError, FinishError or RetryableError. Run must return when ctx ends.
	Run ToolFunc

	// Deferred hides the tool from the model until tool_search (package tools/find) finds it or the
	// conversation contains a call to it. Calls always work.
	Deferred bool
	// Passive means that the caller executes the call: a valid call becomes pending, without Run.
	Passive bool
	// Effect of a call on the world.
	Effect Effect
	// Concurrent means that a call waits for no other call of its step, and that no call waits for
	// it, except by Serial.
	Concurrent bool
	// Inline means that Run depends only on its arguments and on the results of its nested calls,
	// not on clocks, files or goroutines. An inline tool with EffectCompose may run in a replayed
	// workflow.
	Inline bool
	// Timeout of one attempt. 0 means 60 s, a negative number means none; with EffectCompose, 0
	// also means none. When it is over, the context of the call ends. If Run does not return within
	// 100 ms of that, the call ends without it: the result and the Execution state that Run still
	// runs, and what it returns is dropped. A call of EffectPure without a Timeout may wait for
	// Run.
	Timeout time.Duration
	// StatesSending means that Run calls Invocation.Sending immediately before the call can take
	// effect. A call that is interrupted before that, also by a crash, was certainly not sent, and
	// a durable run executes it again without a question. So nothing before Sending may have an
	// effect, also not in a function around Run. false means that each started call may have taken
	// effect.
	StatesSending bool
	// NoRepair rejects arguments that need a repair. Otherwise they are repaired if they have one
	// reading.
	NoRepair bool
	// Repair returns arguments that fit Input in place of args, which neither fit nor have one
	// reading. It sees them as the model wrote them, also if they are not JSON. What it returns is
	// validated and may be repaired again, and Execution.Repairs records it. An error, and nil,
	// reject the call. Repair is not used with NoRepair, nor for arguments that a middleware or a
	// decision has set. It must be safe for concurrent use and depend on args alone. nil means no
	// own repair.
	Repair  func(args json.RawMessage) (json.RawMessage, error)
	Address string // the server of the calls, which durable runs compare; "" means none or unknown
	// Label is the label of results that bring none. An error has no label. nil means that a
	// stranger may have written the results.
	Label *llm.Label
	// Server is the name of the MCP server that has the tool, for rules (mcp:NAME). "" means none.
	Server string
	// MaxResult limits the bytes of text in a result. Longer text keeps its head and its tail. 0
	// means 32 KiB, a negative number means no limit.
	MaxResult int
	// Pin keeps results in requests that history.Window makes shorter.
	Pin bool

	// Serial returns a key for arguments. Calls of one step with the same key are executed one
	// after the other, in call order, also with Concurrent. nil and "" mean no key.
	Serial func(args json.RawMessage) string

	// Reconcile finds out whether an interrupted call of a tool with EffectWrite or EffectUnstated
	// took effect, for example by its Invocation.IdempotencyKey. It returns the result of the call
	// if it did, nil if it did not (the call may then run, with a new approval), and an error if
	// that is unknown. If it returns an error, or Reconcile is nil, the call waits for a decision.
	Reconcile func(ctx context.Context, call llm.ToolCall) (*llm.ToolResult, error)

	agent *Agent // of a tool that Agent.Tool returned

	// fits returns an error for arguments that fit Input and not the Go type of a tool of NewFunc.
	// nil means that Input says all.
	fits func(args json.RawMessage) error

	form atomic.Pointer[toolForm] // nil before the first use; see formed
}

// ToolFunc executes a call. Middleware.Tool wraps it.
type ToolFunc func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error)

// Effect is the effect of a call on the world. It decides whether a call may be retried, cached,
// started early, or repeated after a crash, and what it waits for.
//
// The calls of one step (and of one Invocation.Do) run in parallel, in this order:
//
//   - EffectWrite and EffectIdempotent wait until every earlier call has ended.
//   - EffectUnstated, EffectRead and EffectCompose wait until every earlier EffectWrite and
//     EffectIdempotent has ended. They run together with each other.
//   - EffectPure waits for nothing, and nothing waits for it. The same holds for a tool that is
//     Concurrent, and for a Passive tool, whose calls the caller executes.
//
// A call that is pending or unknown has not ended. A later EffectWrite, EffectIdempotent or
// EffectUnstated that waits for it does not overtake it: it may ask its own question, but it stays
// open and runs when the earlier call has its answer. An approval that it receives before that
// stays valid. EffectRead and EffectCompose do not wait for an answer: they run, and see the state
// before that call. A call that was abandoned (see Tool.Timeout) has ended.
//
// Only the order differs between EffectUnstated and EffectWrite. Everything else treats a call with
// EffectUnstated as a write: see Assumed.
//
// In Go, a call with EffectWrite or EffectUnstated runs without a question unless the agent has an
// approver (Approve with policy.AskBeforeWrites). The command, YAML agents and the server ask by
// default.
type Effect int

// The effects. Every other value means EffectUnstated.
const (
	EffectUnstated   Effect = iota // not stated: parallel like a read, otherwise like a write
	EffectWrite                    // may change the world; ordered; not repeated without a decision
	EffectIdempotent               // may change the world, but a repetition changes nothing more
	EffectRead                     // reads the world
	EffectPure                     // depends only on its arguments
	EffectCompose                  // acts only through nested calls: plans, code, agents
)

// Assumed returns the effect that approvals, journals, retries, caches and recovery after a crash
// assume: EffectWrite for EffectUnstated and for values that are not on the list, otherwise e. An
// Approver that asks before writes compares Assumed, not the effect itself.
func (e Effect) Assumed() Effect {
	if !e.stated() {
		return EffectWrite
	}
	return e
}

func (e Effect) stated() bool { return e > EffectUnstated && e <= EffectCompose }

// effectNames has the name of each effect, in the order of the constants.
var effectNames = [...]string{"unstated", "write", "idempotent", "read", "pure", "compose"}

// unstated reports whether pawl executes the calls of t, and does not know their effect.
func (t *Tool) unstated() bool {
	return t != nil && !t.Passive && !t.Effect.stated()
}

// String returns unstated, write, idempotent, read, pure or compose.
func (e Effect) String() string {
	if e < EffectUnstated || e > EffectCompose {
		return fmt.Sprintf("Effect(%d)", int(e))
	}
	return effectNames[e]
}

// MarshalText writes what String returns.
func (e Effect) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (e *Effect) UnmarshalText(b []byte) error {
	i := slices.Index(effectNames[:], string(b))
	if i < 0 {
		return fmt.Errorf("unknown effect %q; known: %s", b, strings.Join(effectNames[:], ", "))
	}
	*e = Effect(i)
	return nil
}

// Func is NewFunc for programs whose types are known to have a schema. It panics with the error of
// NewFunc, because that is a mistake in the program.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) *Tool {
	t, err := NewFunc(name, description, fn)
	if err != nil {
		panic(fmt.Sprintf("pawl.Func: %v", err))
	}
	return t
}

// NewFunc returns a tool that calls a typed function. In must be a struct or a map with string
// keys. Out may be a string, an llm.ToolResult, or any value with a JSON form, which becomes the
// text and the Data of the result; its schema becomes Output.
//
// The schemas follow one law: a value of the type, written as JSON, fits the schema, and what fits
// the schema and the type can be read. The JSON is as encoding/json writes it, except that a
// time.Duration is text such as "90s", that numbers in a value of type any are json.Numbers with
// all their digits, and that 3.0 is an integer. A type states its own schema with a method
// JSONSchema() json.RawMessage. Arguments that fit the schema and not the type, or that a method
// Validate() error of In or of a type inside it refuses, go back to the model before the call is
// approved. A result that Validate refuses is an error, which the model reads.
//
// Tags describe the fields: json has the name and the options, omitempty and omitzero make a field
// optional. jsonschema has a sentence, which is the description, or rules:
//
//	Color string `json:"color" jsonschema:"enum=red,enum=blue,description=the color of the car"`
//	Seats int    `json:"seats,omitempty" jsonschema:"minimum=1,maximum=9"`
//
// The rules are required, nullable, type, title, description, default, example, deprecated, enum,
// minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf, minLength, maxLength, pattern,
// format, minItems, maxItems, uniqueItems, minProperties, maxProperties, readOnly and writeOnly.
// In a list, rules for its items apply to them. The tags enum:"red,blue" and description:"…" say
// the same as the rules of their names.
//
// The tool has EffectUnstated. Set Effect and the other fields of the tool before its first use.
// The error names the type, the field and a remedy: unexported fields only, functions, channels,
// interfaces with methods, types that only their own UnmarshalJSON can read, and tags with a
// mistake have no schema.
func NewFunc[In, Out any](name, description string, fn func(context.Context, In) (Out, error)) (*Tool, error) {
	in, err := gotype.Of(reflect.TypeFor[In](), gotype.Input)
	if err != nil {
		return nil, fmt.Errorf("tool %s: input: %w", name, err)
	}
	if fn == nil {
		return nil, fmt.Errorf("tool %s: the function is nil; give it one", name)
	}
	t := &Tool{Name: name, Description: description, Input: in.Schema}
	if !in.Exact {
		t.fits = in.Fits
	}
	out := reflect.TypeFor[Out]()
	if out.Implements(reflect.TypeFor[error]()) {
		return nil, fmt.Errorf("tool %s: output: %v is an error, whose JSON has no text: return it as the second result, "+
			"and a value, such as a string, as the first", name, out)
	}
	data := out != reflect.TypeFor[string]() && out != reflect.TypeFor[llm.ToolResult]()
	if data && out.Kind() != reflect.Interface {
		of, err := gotype.Of(out, gotype.Output)
		if err != nil {
			return nil, fmt.Errorf("tool %s: output: %w", name, err)
		}
		t.Output = of.Schema
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
		return typedResult(&out)
	}
	if err := t.Check(); err != nil {
		return nil, err
	}
	return t, nil
}

// typedResult returns the result of a function that returned *out.
func typedResult[Out any](out *Out) (llm.ToolResult, error) {
	switch out := any(*out).(type) {
	case llm.ToolResult:
		return out, nil
	case string:
		return llm.TextResult(out), nil
	}
	if err := gotype.Validate(out); err != nil {
		return llm.ToolResult{}, fmt.Errorf("the tool returned a value that its own check refuses:%s", gotype.FaultText(err))
	}
	b, err := gotype.Encode(out)
	if err != nil {
		return llm.ToolResult{}, fmt.Errorf("result has no JSON form: %w", err)
	}
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: string(b)}}, Data: b}, nil
}

// decodeArgs decodes arguments that fit the schema into a Go value. The text of the failure is for
// the model.
func decodeArgs(tool string, args json.RawMessage, into any) *failure {
	err := gotype.Decode(args, into)
	if err == nil {
		return nil
	}
	return &failure{outcome: OutcomeInvalid, text: misfit(tool, err), err: err}
}

// misfit describes arguments that fit the schema and not the type, for the model.
func misfit(tool string, err error) string {
	return "The arguments of " + tool + " cannot be used:" + gotype.FaultText(err)
}

// Tools returns t alone, which makes a Tool a Toolset.
func (t *Tool) Tools(context.Context) ([]*Tool, error) { return []*Tool{t}, nil }

// Clone returns a copy.
func (t *Tool) Clone() *Tool {
	if t == nil {
		return nil
	}
	return &Tool{Name: t.Name, Description: t.Description, Input: t.Input, Output: t.Output, Run: t.Run,
		Passive: t.Passive, Effect: t.Effect, Deferred: t.Deferred, Timeout: t.Timeout, NoRepair: t.NoRepair,
		MaxResult: t.MaxResult, Pin: t.Pin, Serial: t.Serial, Reconcile: t.Reconcile, Inline: t.Inline,
		Concurrent: t.Concurrent, Repair: t.Repair, Address: t.Address, Server: t.Server, agent: t.agent,
		fits: t.fits, StatesSending: t.StatesSending, Label: t.Label}
}

// Agent returns the agent of a tool that Agent.Tool returned, and nil for other tools. Do not
// change it.
func (t *Tool) Agent() *Agent { return t.agent }

// Check returns the faults of t, joined. t must have a name, an input schema that describes an
// object, and Run or Passive; Reconcile and Inline need the effects that they are for. The schema
// is compiled once, here or at the first use.
func (t *Tool) Check() error {
	switch {
	case t == nil:
		return errors.New("the tool is nil")
	case t.Name == "":
		return errors.New("a tool has no name; set Name")
	}
	_, err := t.schema()
	why := ""
	switch {
	case t.Effect < EffectUnstated || t.Effect > EffectCompose:
		why = fmt.Sprintf("has the unknown Effect %d; use one of the constants, such as EffectRead", t.Effect)
	case t.Run == nil && !t.Passive:
		why = "has neither Run nor Passive; Run executes a call, and Passive leaves it to the caller"
	case t.Reconcile != nil && (t.Passive || t.Effect.Assumed() != EffectWrite):
		why = "has Reconcile, which is for calls with EffectWrite or EffectUnstated that pawl executes; remove it"
	case t.Inline && t.Effect != EffectCompose:
		why = "has Inline, which is for EffectCompose; set Effect, or remove Inline"
	}
	if why != "" {
		err = errors.Join(err, fmt.Errorf("tool %s %s", t.Name, why))
	}
	return err
}

func (t *Tool) schema() (*schema.Schema, error) { return t.formed().schema() }

// meant returns the arguments that a call of t with args has after repair.
func (t *Tool) meant(args json.RawMessage) json.RawMessage {
	if s, err := t.schema(); err == nil && !t.NoRepair && len(args) > 0 {
		args, _, _ = t.repaired(context.Background(), s, args, true)
	}
	return args
}

// repaired validates args against s, the schema of t. With repair, it repairs them as far as t
// allows; see Schema.Arguments. Repair comes last, so that it changes no arguments that are
// accepted without it.
func (t *Tool) repaired(
	ctx context.Context, s *schema.Schema, args json.RawMessage, repair bool,
) (fixed json.RawMessage, repairs []string, refusal string) {
	repair = repair && !t.NoRepair
	fixed, repairs, refusal = t.read(ctx, s, args, repair)
	if refusal == "" || t.Repair == nil || !repair {
		return fixed, repairs, refusal
	}
	own, err := t.Repair(bytes.Clone(args))
	if err != nil || own == nil {
		return fixed, nil, refusal
	}
	if own, repairs, still := t.read(ctx, s, own, true); still == "" {
		return own, append([]string{"the tool's own repair"}, repairs...), ""
	}
	return fixed, nil, refusal
}

// read is Schema.Arguments for the schema and the Go type of t.
func (t *Tool) read(
	ctx context.Context, s *schema.Schema, args json.RawMessage, repair bool,
) (fixed json.RawMessage, repairs []string, refusal string) {
	fixed, repairs, refusal = s.Arguments(ctx, t.Name, args, repair)
	if refusal != "" || t.fits == nil {
		return fixed, repairs, refusal
	}
	if err := t.fits(fixed); err != nil {
		return args, nil, misfit(t.Name, err)
	}
	return fixed, repairs, ""
}

// Validate returns nil if a call of t with args would be executed; see ToolSpec.Validate.
func (t *Tool) Validate(args json.RawMessage) error {
	if t == nil {
		return t.Check()
	}
	s, err := t.schema()
	if err != nil {
		return err
	}
	if _, _, refusal := t.repaired(context.Background(), s, args, true); refusal != "" {
		return errors.New(refusal)
	}
	return nil
}

// toolForm is what is computed from the fields of a Tool, each part at its first use.
type toolForm struct {
	spec      *llm.ToolSpec // its Source is the tool
	schema    func() (*schema.Schema, error)
	canonical func() []byte // of Input
}

// formed returns the form of t as t is now. A copied Tool has the form of its original, and a
// changed Tool an old one: both get their own. Goroutines that use t at the same time get the same
// form.
func (t *Tool) formed() *toolForm {
	f := t.form.Load()
	if f != nil && f.describes(t) {
		return f
	}

	made := newToolForm(t)
	if t.form.CompareAndSwap(f, made) {
		return made
	}
	return t.formed()
}

func newToolForm(t *Tool) *toolForm {
	name, input := t.Name, t.Input
	return &toolForm{
		spec: &llm.ToolSpec{
			Name:        t.Name,
			Description: t.Description,
			Input:       t.Input,
			Output:      t.Output,
			Deferred:    t.Deferred,
			NoRepair:    t.NoRepair,
			Source:      t,
		},
		schema: sync.OnceValues(func() (*schema.Schema, error) {
			s, err := schema.Compile(input)
			if err != nil {
				return nil, fmt.Errorf("tool %s: input schema: %w", name, err)
			}
			return s, nil
		}),
		canonical: sync.OnceValue(func() []byte { return jsonform.Canonical(input) }),
	}
}

// describes reports whether f was computed from t with the fields that t has now.
func (f *toolForm) describes(t *Tool) bool {
	s := f.spec
	switch {
	case s.Source != t:
		return false
	case s.Name != t.Name, s.Description != t.Description:
		return false
	case s.Deferred != t.Deferred, s.NoRepair != t.NoRepair:
		return false
	}
	return bytes.Equal(s.Input, t.Input) && bytes.Equal(s.Output, t.Output)
}

// Spec returns the description of t for a model, with t as its Source. Every call returns the same
// pointer while t is not changed, so that adapters can cache its encoding.
func (t *Tool) Spec() *llm.ToolSpec {
	if t == nil {
		return nil
	}
	return t.formed().spec
}

// specs returns the descriptions of tools.
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
