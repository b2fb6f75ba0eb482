package temporal

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// fieldNames returns the exported fields of a struct.
func fieldNames(of reflect.Type) (names []string) {
	for _, f := range reflect.VisibleFields(of) {
		if f.IsExported() {
			names = append(names, f.Name)
		}
	}
	return names
}

// A recorded tool has every field of a tool except its functions. A new field of pawl.Tool must be
// recorded or be listed here.
func TestToolDefHasEveryField(t *testing.T) {
	full := pawl.Tool{Name: "n", Description: "d", Input: json.RawMessage(`{}`), Output: json.RawMessage(`{}`),
		Deferred: true, Passive: true, Effect: pawl.EffectCompose,
		Inline: true, Timeout: time.Second, NoRepair: true, MaxResult: 1, Pin: true, Address: "a", Server: "s",
		Concurrent: true, StatesSending: true, Label: &llm.Label{By: llm.Trusted},
		Repair:    func(args json.RawMessage) (json.RawMessage, error) { return args, nil },
		Serial:    func(json.RawMessage) string { return "" },
		Run:       func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.ToolResult{}, nil },
		Reconcile: func(context.Context, llm.ToolCall) (*llm.ToolResult, error) { return nil, nil }}
	v := reflect.ValueOf(&full).Elem()
	def := define(&full)
	passive := def.tool()
	// the activity executes it
	notRecorded := []string{"Run", "Reconcile", "Repair", "StatesSending"}
	// no function runs where a model is requested
	notMade := []string{"Run", "Reconcile", "Repair", "StatesSending", "Inline", "Serial"}
	for _, name := range fieldNames(v.Type()) {
		if v.FieldByName(name).IsZero() {
			t.Errorf("the test gives pawl.Tool.%s no value", name)
		}
		if f := reflect.ValueOf(def).FieldByName(name); slices.Contains(notRecorded, name) == (f.IsValid() &&
			!f.IsZero()) {
			t.Errorf("pawl.Tool.%s: recorded %v; see define and notRecorded", name, f.IsValid())
		}
		if f := reflect.ValueOf(passive).Elem().FieldByName(name); !slices.Contains(notMade, name) &&
			!reflect.DeepEqual(f.Interface(), v.FieldByName(name).Interface()) {
			t.Errorf("pawl.Tool.%s: got %v back; see toolDef.tool and notMade", name, f)
		}
	}
}

// A recorded agent has every field of an agent except the fields that stay in the process.
func TestAgentDefHasEveryField(t *testing.T) {
	def := fieldNames(reflect.TypeFor[agentDef]())
	// Parallel is Parallel and StopOnBlock
	inProcess := []string{"Model", "Executor", "Middleware", "Artifacts", "OutputCheck"}
	for _, name := range fieldNames(reflect.TypeFor[pawl.Agent]()) {
		if slices.Contains(def, name) == slices.Contains(inProcess, name) {
			t.Errorf("pawl.Agent.%s is neither recorded nor named in inProcess", name)
		}
	}
}

// An activity sends the model every field of a request, except the overriding name.
func TestModelInputHasEveryField(t *testing.T) {
	in := fieldNames(reflect.TypeFor[modelInput]())
	for _, name := range fieldNames(reflect.TypeFor[llm.Request]()) {
		switch name {
		case "Model": // the agent's own
		case "Whole": // always
		case "Background": // in the heartbeats
		case "Messages": // Head and New
		default:
			if !slices.Contains(in, name) {
				t.Errorf("llm.Request.%s is not in modelInput", name)
			}
		}
	}
}
