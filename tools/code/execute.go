package code

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

// definitions are the descriptions and schemas of the tools.
//
//go:embed *.md *.json
var definitions embed.FS

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
	tool := toolrun.Define(definitions, "execute", &pawl.Tool{
		Name:      toolName,
		Effect:    pawl.EffectCompose,
		MaxResult: -1, // Options.Output bounds the result
		Run:       t.execute,
	}, "maxCode", strconv.Itoa(maxCode), "most", seconds(mostTime), "time", seconds(t.opts.Time))
	tool.Description = described(tool.Description, t.in.Name())
	return tool
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) }

// described returns the part of text that applies to the interpreter with that name.
func described(text, name string) string {
	parts := strings.Split(text, "\n[")
	text = parts[0]
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
	return e.forModel(h, p), nil
}

// seed returns the same value each time the call is executed again.
func seed(v *pawl.Invocation) uint32 {
	sum := sha256.Sum256([]byte(v.IdempotencyKey()))
	return binary.BigEndian.Uint32(sum[:])
}
