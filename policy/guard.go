package policy

// guard.go: Guard: checks of the input, the answers and the results of tools.

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/background"
	"github.com/pawl-go/pawl/llm"
)

// Guard checks what enters and leaves an agent, each in one place: the messages of the user, the
// texts of the model, and the results of tools. It stands first among the middleware, outside of
// policies that change requests. ModelCheck and FlagCheck are ready-made checks.
//
// The check of new input runs in parallel with the model's request. Until it allows the input,
// nothing of the reply is passed on and no tool starts; otherwise the reply is dropped. Output is
// held back until the reply is complete and checked, so it does not stream, and no call starts
// early. Reasoning and the arguments of calls are not checked, except the answer of an agent with
// Output.
//
// A stop of input or output is a reply with FinishReasonContentFilter, whose text names the guard
// and the reason: the run fails with it, and a durable run has it in its journal. A stop of a
// result aborts the run. Stored replies and results are not checked again when a run is resumed.
//
// A notice with the code "guard" reports each stop and replacement, and the progress of the call
// does so for a result.
type Guard struct {
	// Name stands in events and errors. "" means guard.
	Name string
	// Places are where the guard checks. Nil means everywhere.
	Places []GuardPlace
	// Check rules on a text. It must be safe for concurrent use. Rulings on input are remembered.
	Check func(context.Context, Guarded) (Ruling, error)
	// Open passes a text whose check fails, with a notice. Otherwise a request fails with the error
	// and can be resumed, and a result is withheld from the model.
	Open bool
	// Timeout bounds one check. 0 means 30 s.
	Timeout time.Duration
}

// GuardPlace is where a Guard checks.
type GuardPlace string

// The places of a Guard.
const (
	GuardInput  GuardPlace = "input"  // each message of the user
	GuardOutput GuardPlace = "output" // the text of each reply
	GuardResult GuardPlace = "result" // the text of a tool's result, or of its error
)

// Guarded is a text to check.
type Guarded struct {
	// Place is where the text stands.
	Place GuardPlace `json:"place"`
	// Tool is the name of the tool that returned a result. "" means that the text is no result.
	Tool string `json:"tool,omitzero"`
	// Text is what to check. It is never empty.
	Text string `json:"text"`
}

// GuardAction is what happens to a checked text.
type GuardAction string

// The actions. Every other word, also "", is an error of the check.
const (
	GuardAllow   GuardAction = "allow"
	GuardReplace GuardAction = "replace" // by Ruling.Text
	GuardStop    GuardAction = "stop"    // for the reason Ruling.Text
)

// Ruling is the outcome of a check.
type Ruling struct {
	// Action is what happens to the text.
	Action GuardAction
	// Text is the text in place of the checked text, or the reason of a stop.
	Text string
	// Usage is the usage of the check. For input and output it counts in the usage of the run.
	Usage llm.Usage
	// Requests is the number of model requests of the check. 0 means that it asked no model.
	Requests int
}

// Middleware returns the middleware that enforces g.
func (g Guard) Middleware() pawl.Middleware {
	g.Name = cmp.Or(g.Name, "guard")
	g.Timeout = cmp.Or(max(g.Timeout, 0), 30*time.Second)
	s := &guard{Guard: g, known: map[[sha256.Size]byte]Ruling{}}
	m := pawl.Middleware{Check: func([]*pawl.Tool) error { return g.check() }}
	if s.guards(GuardInput) || s.guards(GuardOutput) {
		m.Model = func(inner llm.Model) llm.Model { return &guarded{inner, s} }
	}
	if s.guards(GuardResult) {
		m.Approved = func(next pawl.ToolFunc) pawl.ToolFunc {
			return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
				res, err := next(ctx, call)
				return s.result(ctx, res, err)
			}
		}
	}
	return m
}

// check reports settings that guard nothing.
func (g Guard) check() error {
	if g.Check == nil {
		return fmt.Errorf("guard %s: Check is nil; set it, for example to ModelCheck", g.Name)
	}
	for _, p := range g.Places {
		switch p {
		case GuardInput, GuardOutput, GuardResult:
		default:
			return fmt.Errorf("guard %s: there is no place %q; there are input, output and result", g.Name, p)
		}
	}
	return nil
}

// guard is a Guard with its rulings on input.
type guard struct {
	Guard
	mu    sync.Mutex
	known map[[sha256.Size]byte]Ruling // by the digest of the text
}

const mostRulings = 4096

// guards reports whether g checks at the place p.
func (g *guard) guards(p GuardPlace) bool { return g.Places == nil || slices.Contains(g.Places, p) }

// rule checks a text. An error is returned with the usage of the check.
func (g *guard) rule(ctx context.Context, what Guarded) (r Ruling, err error) {
	ctx, cancel := context.WithTimeout(background.Aside(ctx), g.Timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
		if err != nil {
			err = fmt.Errorf("guard %s: the %s could not be checked: %w", g.Name, what.Place, err)
		}
		if err != nil && g.Open && ctx.Err() != context.Canceled {
			r.Action = GuardAllow
			r.Text = err.Error()
			err = nil
		}
	}()

	r, err = g.Check(ctx, what)
	switch r.Action {
	case GuardAllow:
		r.Text = ""
	case GuardReplace, GuardStop:
	default:
		if err == nil {
			err = fmt.Errorf("%q is no action; there are allow, replace and stop", r.Action)
		}
	}
	return r, err
}

// notice describes r for observers. nil means that there is nothing to report.
func (g *guard) notice(p GuardPlace, r Ruling) *llm.Notice {
	text := r.Text
	switch {
	case r.Action == GuardReplace:
		text = fmt.Sprintf("guard %s replaced the %s", g.Name, p)
	case r.Action == GuardStop:
		text = fmt.Sprintf("guard %s stopped the %s: %s", g.Name, p, cmp.Or(r.Text, "no reason was given"))
	case text == "":
		return nil
	}
	data, _ := json.Marshal(map[string]string{"guard": g.Name, "place": string(p), "action": string(r.Action)})
	return &llm.Notice{Code: "guard", Text: text, Data: data}
}

// result checks what a tool returned.
func (g *guard) result(ctx context.Context, res llm.ToolResult, err error) (llm.ToolResult, error) {
	v := pawl.InvocationFrom(ctx)
	text := res.Text()
	if err != nil {
		// Only a tool that ran has words of its own. A composing call may wait for its calls, and
		// their results are checked.
		text = err.Error()
		if v == nil || v.Attempt == 0 || v.Tool().Effect == pawl.EffectCompose {
			return res, err
		}
	}
	if text == "" || ctx.Err() != nil {
		return res, err
	}

	what := Guarded{Place: GuardResult, Text: text}
	if v != nil {
		what.Tool = v.Tool().Name
	}
	r, failed := g.rule(ctx, what)
	if failed != nil {
		return llm.ErrorResult("The result is withheld, because it could not be checked."), nil
	}

	n := g.notice(GuardResult, r)
	if n != nil && v != nil {
		v.Emit(n.Text, n.Data)
	}
	switch r.Action {
	case GuardStop:
		return llm.ToolResult{}, pawl.AbortError(errors.New(n.Text))
	case GuardReplace:
		return llm.ToolResult{Parts: llm.TextResult(r.Text).Parts, IsError: res.IsError || err != nil}, nil
	}
	return res, err
}

// guarded is a model whose input and output are checked.
type guarded struct {
	llm.Model
	guard *guard
}

// Unwrap returns the wrapped model.
func (m *guarded) Unwrap() llm.Model { return m.Model }

// Stream yields a reply that the guard has allowed.
func (m *guarded) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if !m.guard.guards(GuardInput) {
			m.reply(ctx, req, nil, yield)
			return
		}

		view, stop, texts := m.guard.view(req, nil)
		switch {
		case stop != nil:
			m.guard.withhold(GuardInput, *stop, &llm.Response{Requests: -1}, yield) // none sent
		case len(texts) == 0:
			m.reply(ctx, view, nil, yield)
		default:
			m.together(ctx, req, view, texts, yield)
		}
	}
}

// view returns req with the rulings on its input: the given and the remembered ones. stop is the
// stop of a new message, and texts have no ruling. A stopped message of an earlier turn is replaced
// by a remark.
func (g *guard) view(req *llm.Request, given map[string]Ruling) (view *llm.Request, stop *Ruling,
	texts []string) {
	answered := len(req.Messages) - 1
	for answered >= 0 && req.Messages[answered].Role != llm.RoleAssistant {
		answered--
	}

	changed := *req
	view = &changed
	view.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		text := m.Text()
		if m.Role != llm.RoleUser || text == "" {
			continue
		}

		r, known := given[text]
		if !known {
			r, known = g.remembered(text)
		}
		switch {
		case !known:
			texts = append(texts, text)
		case r.Action == GuardStop && i > answered:
			stop = &r
		case r.Action == GuardStop:
			view.Messages[i].Parts = replaced(m.Parts, "[removed by guard "+g.Name+"]")
		case r.Action == GuardReplace:
			view.Messages[i].Parts = replaced(m.Parts, r.Text)
		}
	}
	return view, stop, texts
}

// remembered returns the ruling on an input that was checked before.
func (g *guard) remembered(text string) (r Ruling, ok bool) {
	digest := sha256.Sum256([]byte(text))
	g.mu.Lock()
	defer g.mu.Unlock()
	r, ok = g.known[digest]
	return r, ok
}

// remember stores the ruling on an input.
func (g *guard) remember(text string, r Ruling) {
	digest := sha256.Sum256([]byte(text))
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= mostRulings {
		clear(g.known)
	}
	g.known[digest] = r
}

// replaced returns parts with text in place of their texts.
func replaced(parts []llm.Part, text string) (out []llm.Part) {
	out = []llm.Part{llm.Text{Text: text}}
	for _, p := range parts {
		if _, ok := p.(llm.Text); !ok {
			out = append(out, p)
		}
	}
	return out
}

// inputs are the rulings on new texts, with the usage of the checks.
type inputs struct {
	rulings map[string]Ruling
	notices []*llm.Notice
	allow   bool // all texts are allowed
	spent   llm.Response
	err     error
}

// input checks texts, and remembers the rulings.
func (g *guard) input(ctx context.Context, texts []string) *inputs {
	in := &inputs{rulings: map[string]Ruling{}, allow: true}
	for _, text := range texts {
		r, err := g.rule(ctx, Guarded{Place: GuardInput, Text: text})
		in.spent.Usage.Add(r.Usage)
		in.spent.Requests += r.Requests
		if err != nil {
			in.allow = false
			in.err = err
			return in
		}

		if n := g.notice(GuardInput, r); n != nil {
			in.notices = append(in.notices, n)
		}
		in.rulings[text] = r
		if r.Action != GuardAllow {
			in.allow = false
		}
		failed := r.Action == GuardAllow && r.Text != ""
		if !failed {
			g.remember(text, r)
		}
	}
	return in
}

// together sends view while texts are checked, and holds its reply back. If a text is not allowed,
// the reply is dropped, and req is sent anew with the rulings.
func (m *guarded) together(ctx context.Context, req, view *llm.Request, texts []string,
	yield func(llm.Delta, error) bool) {
	ctx, done := context.WithCancel(ctx)
	asked, cancel := context.WithCancel(ctx)
	h := &holding{ruled: make(chan *inputs, 1), yield: yield, requests: 1}
	go func() {
		in := m.guard.input(ctx, texts)
		if !in.allow {
			cancel()
		}
		h.ruled <- in
	}()
	defer func() {
		done()
		if h.in == nil {
			<-h.ruled
		}
	}()

	m.reply(asked, view, h.allowed, func(d llm.Delta, err error) bool {
		return h.pass(d, err, asked.Err() != nil)
	})
	if h.allowed() {
		if h.broken != nil {
			h.yield(llm.Delta{}, h.broken)
		}
		return
	}

	in := h.in
	h.addDropped()
	yield = in.before(yield)
	view, stop, _ := m.guard.view(req, in.rulings)
	switch {
	case in.err != nil:
		yield(llm.Delta{}, in.err)
	case stop != nil:
		m.guard.withhold(GuardInput, *stop, &llm.Response{Requests: -1}, yield)
	default:
		m.reply(ctx, view, nil, yield)
	}
}

// holding is a reply that is held back until its input is ruled on.
type holding struct {
	ruled chan *inputs
	in    *inputs // nil until the ruling
	yield func(llm.Delta, error) bool

	held     []llm.Delta
	broken   error // the error that ended the reply
	requests int   // of the reply, if it is dropped
}

// allowed waits for the ruling, and reports whether the reply is passed on.
func (h *holding) allowed() bool {
	if h.in == nil {
		h.rule(<-h.ruled)
	}
	return h.in.allow
}

// rule stores the ruling. If the input is allowed, what is held is passed on.
func (h *holding) rule(in *inputs) {
	h.in = in
	if !in.allow {
		return
	}
	h.yield = in.before(h.yield)
	for _, d := range h.held {
		h.yield(d, nil)
	}
}

// pass passes a delta on, or holds it. cancelled means that the request was cancelled.
func (h *holding) pass(d llm.Delta, err error, cancelled bool) bool {
	if h.in == nil {
		select {
		case in := <-h.ruled:
			h.rule(in)
		default:
		}
	}

	switch {
	case h.in != nil && h.in.allow:
		return h.yield(d, err)
	case err == nil:
		h.held = append(h.held, d)
		return true
	case !cancelled:
		h.requests-- // its failure has counted it
	}
	h.broken = err
	return false
}

// addDropped adds the usage of the dropped reply to the usage of the checks.
func (h *holding) addDropped() {
	dropped := llm.Response{Requests: h.requests}
	for _, d := range h.held {
		_ = dropped.Add(d) // only its usage counts
	}
	h.in.spent.Usage.Add(dropped.Usage)
	h.in.spent.Requests += dropped.Requests
}

// before yields the notices and the usage of in, and returns yield with that usage added.
func (in *inputs) before(yield func(llm.Delta, error) bool) func(llm.Delta, error) bool {
	more := yield(llm.Delta{Requests: in.spent.Requests, Usage: &in.spent.Usage}, nil)
	for _, n := range in.notices {
		more = more && yield(llm.Delta{Notice: n}, nil)
	}
	return func(d llm.Delta, err error) bool {
		if d.Usage != nil && in.spent.Requests > 0 {
			d.Usage = d.Usage.Plus(in.spent.Usage)
		}
		more = more && yield(d, err)
		return more
	}
}

// reply yields the reply to req. If output is guarded, it is held back until it is complete and
// checked; only notices, and what identifies a reply in the background, are not. allowed waits
// until the input is ruled on, and reports whether the reply is used; nil means that it is.
func (m *guarded) reply(ctx context.Context, req *llm.Request, allowed func() bool,
	yield func(llm.Delta, error) bool) {
	if !m.guard.guards(GuardOutput) {
		m.Model.Stream(ctx, req)(yield)
		return
	}
	resp, err := m.collect(ctx, req, yield)
	if err != nil {
		if err != errStopped && yield(llm.Delta{Requests: resp.Requests, Usage: &resp.Usage}, nil) {
			yield(llm.Delta{}, err)
		}
		return
	}
	text := answerOf(resp)
	if text == "" || resp.Finish == "" {
		resp.Deltas()(yield)
		return
	}
	if allowed != nil && !allowed() {
		yield(llm.Delta{Requests: resp.Requests, Usage: &resp.Usage}, nil)
		return
	}

	r, err := m.guard.rule(ctx, Guarded{Place: GuardOutput, Text: text})
	resp.Requests += r.Requests
	if r.Requests > 0 {
		resp.Usage.Add(r.Usage)
	}
	switch {
	case err != nil:
		if yield(llm.Delta{Requests: resp.Requests + 1, Usage: &resp.Usage}, nil) {
			yield(llm.Delta{}, err)
		}
		return
	case r.Action == GuardStop:
		m.guard.withhold(GuardOutput, r, resp, yield)
		return
	case r.Action == GuardReplace:
		replaceAnswer(resp, r.Text)
	}
	n := m.guard.notice(GuardOutput, r)
	if n == nil || yield(llm.Delta{Notice: n}, nil) {
		resp.Deltas()(yield)
	}
}

var errStopped = errors.New("the consumer stopped")

// collect returns the whole reply to req. It yields what is not held back.
func (m *guarded) collect(ctx context.Context, req *llm.Request,
	yield func(llm.Delta, error) bool) (*llm.Response, error) {
	resp := new(llm.Response)
	for d, err := range m.Model.Stream(ctx, req) {
		if err == nil {
			err = resp.Add(d)
		}
		if err != nil {
			return resp, err
		}
		now := llm.Delta{Notice: d.Notice, Background: d.Background}
		if (d.Notice != nil || d.Background != nil) && !yield(now, nil) {
			return resp, errStopped
		}
	}
	return resp, nil
}

// answerOf returns the text of a reply, with the answer of an agent with Output.
func answerOf(resp *llm.Response) string {
	text := resp.Message.Text()
	for _, c := range resp.Message.Calls() {
		if c.Name == answerTool {
			text += string(c.Args)
		}
	}
	return text
}

// replaceAnswer puts text in place of what answerOf returns.
func replaceAnswer(resp *llm.Response, text string) {
	resp.Message.Parts = replaced(resp.Message.Parts, text)
	for i, p := range resp.Message.Parts {
		if c, ok := p.(llm.ToolCall); ok && c.Name == answerTool {
			c.Args = json.RawMessage(text)
			resp.Message.Parts[i] = c
		}
	}
}

// answerTool is the tool that takes the answer of an agent with Output.
const answerTool = "final_answer"

// withhold yields the reply of a stop, with the usage of resp.
func (g *guard) withhold(p GuardPlace, r Ruling, resp *llm.Response, yield func(llm.Delta, error) bool) {
	n := g.notice(p, r)
	if !yield(llm.Delta{Notice: n}, nil) || !yield(llm.Delta{Part: llm.Text{Text: n.Text}, Done: true}, nil) {
		return
	}
	yield(llm.Delta{
		Usage:    &resp.Usage,
		Finish:   llm.FinishReasonContentFilter,
		Model:    resp.Model,
		ID:       resp.ID,
		Requests: resp.Requests,
	}, nil)
}
