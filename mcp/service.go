package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/foreign"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp/internal/wire"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/redact"
)

// Service offers toolsets, agents, resources and prompts to MCP clients. Each call goes through
// pawl's pipeline like a call of a model: it is validated, approved and limited, and it emits
// events. Fill in a literal. It may serve any number of clients concurrently and must not be
// changed while serving.
type Service struct {
	Name         string // empty means pawl
	Version      string // empty means 0
	Instructions string // for the clients' models; empty means none

	Tools  []pawl.Toolset // evaluated when serving begins
	Agents []Offer        // each is a tool whose argument is a task

	Resources []Resource // data that clients can read
	Prompts   []Prompt   // the first of two with the same name counts

	// Approve decides which calls need approval. Nil means policy.AskBeforeWrites.
	Approve    pawl.Approver
	Middleware []pawl.Middleware // wraps the calls of Tools; agents have their own

	Secrets *redact.Redactor // hides secrets in resources and logs; nil means that there are none

	// Task returns the run of an agent's call by the ID that Offer.Runner got; another process may
	// have started it. With it, a call of an Offer with a Runner becomes a task after 5 s, for a
	// client that declares the extension io.modelcontextprotocol/tasks. Nil means no tasks.
	Task func(id string) Task
}

// Offer is an agent as a tool for MCP clients. The tool's name is the agent's name.
type Offer struct {
	Agent       *pawl.Agent // executes the tasks
	Title       string      // for people; empty means none
	Description string      // for the clients' models

	// Runner creates the run of a call if it is more than the agent in memory. id is random, and
	// the run may take it as its ID. The run gets the task, and Decisions when it is pending, as
	// durable runs do. Approvals then come from the agent's own middleware alone. If the Runner has
	// a method Cancel(context.Context) error, it is called when no person can be asked. Nil means
	// that the agent runs in this process.
	Runner func(id string) pawl.Runner
}

// begun is a call that was started for a client, with a function that starts it, and resumes it
// from a result after an answer. run is the result of Offer.Runner, or nil.
type begun struct {
	runner func(id string) pawl.Runner
	stream func(ctx context.Context, run pawl.Runner, from *pawl.Result, answer ...llm.Message) events
	answer func(res *pawl.Result, err error) *sdk.CallToolResult
}

// events are the events of a run.
type events = iter.Seq2[pawl.Event, error]

// host serves a Service.
type host struct {
	service *Service
	sdk     *sdk.Server
	tools   pawl.Toolsets // tools, which were evaluated
	open    questions
	mu      sync.Mutex
	watches map[sdk.Session]map[string]*watch // by session and URI
	every   time.Duration                     // see HTTPOptions.Poll
}

// host creates the SDK's server. A tool that cannot be offered is an error that names it.
func (s *Service) host(ctx context.Context) (*host, error) {
	h := &host{service: s, open: questions{open: map[string]*asked{}}, watches: map[sdk.Session]map[string]*watch{}}
	tools, err := pawl.Toolsets(s.Tools).Tools(ctx)
	if err != nil {
		return nil, err
	}

	caps := &sdk.ServerCapabilities{
		Tools:     &sdk.ToolCapabilities{},
		Prompts:   &sdk.PromptCapabilities{},
		Resources: &sdk.ResourceCapabilities{},
	}
	//lint:ignore SA1019 clients of older protocols ask for logs
	caps.Logging = &sdk.LoggingCapabilities{}

	name := &sdk.Implementation{Name: cmp.Or(s.Name, "pawl"), Version: cmp.Or(s.Version, "0")}
	h.sdk = sdk.NewServer(name, &sdk.ServerOptions{
		Instructions:       s.Instructions,
		CompletionHandler:  h.complete,
		SubscribeHandler:   h.subscribe,
		UnsubscribeHandler: h.unsubscribe,
		Capabilities:       caps,
	})
	if s.Task != nil {
		h.offerTasks(caps)
	}
	for _, r := range s.Resources {
		h.offer(r)
	}
	for _, p := range slices.Backward(s.Prompts) { // the SDK replaces the first of two
		h.offerPrompt(p)
	}
	h.sdk.AddReceivingMiddleware(h.results)
	h.sdk.AddSendingMiddleware(h.onlyChanged)

	taken := map[string]bool{}
	for _, t := range tools {
		h.tools = append(h.tools, t)
		if t.Passive {
			return nil, fmt.Errorf("tool %s is passive: no client can execute it", t.Name)
		}
		taken[t.Name] = true
		if err := h.add(t, "", h.toolCall(t)); err != nil {
			return nil, err
		}
	}
	for _, o := range s.Agents {
		switch {
		case o.Agent == nil || o.Agent.Name == "":
			return nil, errors.New("an agent that is offered needs a name")
		case taken[o.Agent.Name]:
			return nil, fmt.Errorf("two tools are named %q", o.Agent.Name)
		}
		taken[o.Agent.Name] = true
		if err := h.add(o.Agent.Tool(o.Description), o.Title, h.agentCall(o)); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// add offers one tool.
func (h *host) add(t *pawl.Tool, title string, call func(json.RawMessage) begun) (err error) {
	if err := t.Check(); err != nil {
		return err
	}
	defer func() { // the SDK panics at schemas that it does not accept
		if v := recover(); v != nil {
			err = fmt.Errorf("tool %s cannot be offered: %v", t.Name, v)
		}
	}()
	def := &sdk.Tool{Name: t.Name, Title: title, Description: t.Description, InputSchema: asObject(t.Input),
		Annotations: annotations(t.Effect)}
	if ofObject(t.Output) {
		def.OutputSchema = t.Output
	}
	h.sdk.AddTool(def, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		args := r.Params.Arguments
		if string(args) == "null" { // programs write it for no arguments
			args = nil
		}
		return h.handle(ctx, r, call(args))
	})
	return nil
}

// asObject returns the schema with "type": "object", which clients expect.
func asObject(schema json.RawMessage) json.RawMessage {
	var m map[string]json.RawMessage
	if len(schema) == 0 || json.Unmarshal(schema, &m) != nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	if string(m["type"]) == `"object"` {
		return schema
	}
	m["type"] = json.RawMessage(`"object"`)
	out, _ := json.Marshal(m) // it was decoded
	return out
}

func ofObject(schema json.RawMessage) bool {
	var m struct{ Type any }
	return json.Unmarshal(schema, &m) == nil && m.Type == "object"
}

// annotations returns the hints that state e. EffectUnstated has none.
func annotations(e pawl.Effect) *sdk.ToolAnnotations {
	reads := e == pawl.EffectRead || e == pawl.EffectPure
	a := &sdk.ToolAnnotations{ReadOnlyHint: reads, IdempotentHint: reads || e == pawl.EffectIdempotent}
	if e == pawl.EffectWrite {
		destructive := true // the protocol's default; a client of pawl reads that a write is stated
		a.DestructiveHint = &destructive
	}
	return a
}

// ServeStdio serves one client over in and out until in ends or ctx ends. A line that is no message
// is answered with an error, as JSON-RPC requires, and does not end the connection.
func (s *Service) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	h, err := s.host(ctx)
	if err != nil {
		return err
	}

	written := &wholeLines{out: out}
	var requests wire.Requests
	read := wire.Reader{
		Most:   maxBody,
		Repair: func(b []byte) ([]byte, error) { return requests.Repair(b, wire.Source{}) },
		Bad: func(code int, text string) []byte {
			_, _ = written.Write(append(wire.Error(nil, code, text), '\n')) // the SDK sees it too
			return nil
		},
	}
	err = h.sdk.Run(ctx, &sdk.IOTransport{
		Reader:        read.Lines(io.NopCloser(in)),
		Writer:        &recorded{written, requests.Sent},
		MaxLineLength: 2 * maxBody,
	})
	// the client has disconnected
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) || ctx.Err() != nil {
		return nil
	}
	return err
}

// wholeLines writes to out one Write at a time. Closing it has no effect.
type wholeLines struct {
	mu  sync.Mutex
	out io.Writer
}

// Write writes b.
func (w *wholeLines) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(b)
}

// Close does nothing.
func (w *wholeLines) Close() error { return nil }

// approver decides which calls need the approval of a person.
func (s *Service) approver() pawl.Middleware {
	if s.Approve == nil {
		return pawl.Approve(policy.AskBeforeWrites)
	}
	return pawl.Approve(s.Approve)
}

// toolCall returns a call of a tool. The call is the last reply of a run whose model says nothing
// more. It can therefore be pending, and the run resumes from there.
func (h *host) toolCall(t *pawl.Tool) func(json.RawMessage) begun {
	return func(args json.RawMessage) begun {
		a := &pawl.Agent{Name: "mcp", Model: silent{}, Tools: []pawl.Toolset{h.tools},
			Middleware: append([]pawl.Middleware{h.service.approver()}, h.service.Middleware...)}
		call := llm.ToolCall{ID: "call", Name: t.Name, Args: args}
		return begun{
			stream: func(ctx context.Context, _ pawl.Runner, from *pawl.Result, d ...llm.Message) events {
				return a.ResumeStream(ctx, cmp.Or(from, &pawl.Result{Messages: []llm.Message{
					llm.User("An MCP client calls " + t.Name + ".").WithLabel(nil), llm.Assistant(call)}}), d...)
			},
			answer: func(res *pawl.Result, err error) *sdk.CallToolResult {
				for _, m := range res.Messages {
					for _, p := range m.Parts {
						if r, ok := p.(llm.ToolResult); ok && r.CallID == call.ID {
							return h.toResult(r)
						}
					}
				}
				return failure("The call has no result: " + why(res, err))
			},
		}
	}
}

// agentCall returns a run of an agent.
func (h *host) agentCall(o Offer) func(json.RawMessage) begun {
	return func(args json.RawMessage) begun {
		a := *o.Agent
		a.Middleware = append([]pawl.Middleware{h.service.approver()}, a.Middleware...)
		var in struct{ Task string }
		_ = json.Unmarshal(args, &in)
		return begun{
			runner: o.Runner,
			stream: func(ctx context.Context, run pawl.Runner, from *pawl.Result, d ...llm.Message) events {
				switch {
				case strings.TrimSpace(in.Task) == "":
					return func(yield func(pawl.Event, error) bool) {
						yield(pawl.Event{}, errors.New("the arguments need a task: what to do, in words"))
					}
				case from == nil:
					// The model of a client wrote the task, so that it is not the user's words.
					d = []llm.Message{llm.User(in.Task).WithLabel(nil)}
				}
				if run != nil {
					return run.Stream(ctx, d...)
				}
				return a.ResumeStream(ctx, from, d...)
			},
			answer: func(res *pawl.Result, err error) *sdk.CallToolResult { return h.agentAnswer(a.Name, res, err) },
		}
	}
}

// agentAnswer returns the end of an agent's run for clients.
func (h *host) agentAnswer(name string, res *pawl.Result, err error) *sdk.CallToolResult {
	if res.Stop.Class() != pawl.ClassAnswered {
		text := name + " stopped without an answer: " + why(res, err)
		if last := res.Text(); last != "" {
			text += "\nIts last words: " + last
		}
		for _, c := range res.Calls() { // a client may execute them
			text += "\nNot executed: " + c.Name + " " + string(c.Args)
		}
		out := failure(text)
		var unfit *pawl.OutputError
		if errors.As(res.Err(), &unfit) {
			out.Meta = sdk.Meta{foreign.UnfitKey: foreign.Unfit{Answer: unfit.Text, Faults: unfit.Faults}}
		}
		return out
	}
	r := llm.TextResult(res.Text())
	r.Data = res.Output
	return h.toResult(r)
}

func why(res *pawl.Result, err error) string {
	if res.Cause == "" && err != nil {
		return err.Error()
	}
	return cmp.Or(res.Cause, string(res.Stop))
}

// silent is a model with empty answers.
type silent struct{}

func (silent) Stream(context.Context, *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{Requests: -1, Finish: llm.FinishReasonStop}, nil) // it sends no request
	}
}

// failure returns a result that describes a failure.
func failure(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// toResult converts a result for clients.
func (h *host) toResult(r llm.ToolResult) *sdk.CallToolResult {
	out := &sdk.CallToolResult{IsError: r.IsError, Content: []sdk.Content{}}
	for _, p := range r.Parts {
		if c := h.content(p); c != nil {
			out.Content = append(out.Content, c)
		}
	}
	if len(r.Data) > 0 && r.Data[0] == '{' {
		out.StructuredContent = r.Data
	}
	return out
}
