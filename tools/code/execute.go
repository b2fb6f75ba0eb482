package code

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

//go:embed execute.md
var executeText string

const (
	toolName      = "execute_code"
	refusedInside = "execute_code cannot be called from a program: do it in this program, or in the next"
)

type executor struct {
	in   Interpreter
	opts Options
}

// insideKey marks the context of a program's calls.
type insideKey struct{}

func (t *executor) tool() *pawl.Tool {
	return &pawl.Tool{
		Name:        toolName,
		Description: described(t.in.Name()),
		Input: json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{`+
			`"code":{"type":"string","minLength":1,"maxLength":%d,"description":"The program."},`+
			`"timeout":{"type":"integer","minimum":1,"maximum":%d,"description":"Seconds until the program is ended, without the time of its calls. Default %d, at most %d."}`+
			`},"required":["code"],"additionalProperties":false}`, maxCode, int(mostTime.Seconds()), int(t.opts.Time.Seconds()), int(mostTime.Seconds()))),
		Output: json.RawMessage(`{"type":"object","properties":{"outcome":{"type":"string"},"result":{"description":"what set_result was given last; absent: nothing"},"error":{"type":"string"},` +
			`"line":{"type":"integer"},"logs":{"type":"string"},"logs_bytes":{"type":"integer"},"calls":{"type":"array","items":{"type":"object","properties":{"tool":{"type":"string"},` +
			`"outcome":{"type":"string"}},"required":["tool","outcome"]}}},"required":["outcome","calls"],"additionalProperties":false}`),
		Effect:    pawl.EffectCompose,
		MaxResult: -1, // Options.Output bounds the result
		Run:       t.execute,
	}
}

// described returns the description of the tool for the interpreter with that name.
func described(name string) string {
	parts := strings.Split(executeText, "\n[")
	text := parts[0]
	for _, p := range parts[1:] {
		if rest, ok := strings.CutPrefix(p, name+"]\n"); ok {
			text += "\n" + rest
		}
	}
	return strings.TrimSpace(text)
}

func (t *executor) execute(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
	var a struct {
		Code    string  `json:"code"`
		Timeout float64 `json:"timeout"`
	}
	if err := json.Unmarshal(call.Args, &a); err != nil {
		return llm.ErrorResult("invalid args: " + err.Error()), nil
	}
	v := pawl.InvocationFrom(ctx)
	switch {
	case v == nil:
		return llm.ErrorResult("execute_code calls tools, so it can only be called in a run."), nil
	case ctx.Value(insideKey{}) != nil: // called through a plan or an agent
		return llm.ErrorResult(refusedInside), nil
	case len(a.Code) > maxCode:
		return llm.ErrorResult(fmt.Sprintf("The program has %d bytes, at most %d are run.", len(a.Code), maxCode)), nil
	}
	p := program{code: a.Code, seed: seed(v), since: v.Since(), time: t.opts.Time, output: t.opts.Output}
	if a.Timeout > 0 {
		p.time = min(time.Duration(a.Timeout*float64(time.Second)), mostTime)
	}
	h := &host{inv: v, most: t.opts.Calls}
	e := t.in.run(context.WithValue(ctx, insideKey{}, true), p, h)
	if own, ok := h.ended(); ok {
		own.logs, own.result = e.logs, e.result
		e = own
	} else if h.fatal != nil {
		return llm.ToolResult{}, h.fatal // the call is pending, or has ended
	}
	if e.outcome == cancelled {
		return llm.ToolResult{}, context.Cause(ctx)
	}
	return e.told(h, p), nil
}

// seed returns the same value each time the call is executed again.
func seed(v *pawl.Invocation) uint32 {
	sum := sha256.Sum256([]byte(v.IdempotencyKey()))
	return binary.BigEndian.Uint32(sum[:])
}
