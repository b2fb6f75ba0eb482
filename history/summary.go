package history

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// NoticeSummaryFailed is the code of the notice that a summary could not be made.
const NoticeSummaryFailed = "summary_failed"

//go:embed summary.md
var summaryPage string

// Summary returns the middleware that sends the turns of Budget and, in place of the others, a
// message of the user with their summary by m. A nil m means the model that is asked anyway. A
// summary is made when the cut moves, of the summary before and the turns that are newly left out.
// It is stored under the messages that it replaces: it is the same in each request, is made once,
// and serves all runs with the same beginning. It costs a request, whose usage counts with the
// reply's. Under pawl.Limits.Cost, m needs a price too.
//
// If m fails or is cut short, the request is sent with the last summary, if any. A notice
// summary_failed reports this, and the next request tries again. The summary itself does not count
// against tokens: half of them is free when it is made, and it is asked to take an eighth.
//
// Summaries are stored in memory, the last thousand of each middleware.
func Summary(m llm.Model, tokens int, o *Options) pawl.Middleware {
	s := &summaries{model: m, page: summaryPage, tokens: tokens, cached: map[string]*summary{}}
	if o != nil && o.Prompt != "" {
		s.page = o.Prompt
	}
	s.page = strings.ReplaceAll(strings.TrimSpace(s.page), "WORDS", strconv.Itoa(max(50, tokens/8*3/4)))
	estimate := o.estimate()
	cut := func(ctx context.Context, inner llm.Model, req *llm.Request) (view, error) {
		c := parse(req)
		cuts := c.budget(tokens, estimate)
		k := cuts[len(cuts)-1]
		if k.turn == 0 {
			return c.from(k, req), nil
		}
		text, asked, err := s.of(ctx, inner, req, &c, cuts)
		if ctx.Err() != nil {
			return view{}, context.Cause(ctx)
		}
		var instead []llm.Message
		if text != "" {
			instead = append(instead, llm.User("Notes of the conversation so far, in place of its beginning:\n\n"+text))
		}
		v := c.from(k, req, instead...)
		v.usage, v.requests = asked.Usage, asked.Requests
		if err != nil {
			v.notices = append(v.notices, &llm.Notice{Code: NoticeSummaryFailed, Text: "what is left out could not be summarised: " + err.Error()})
		}
		return v, nil
	}
	return pawl.Middleware{Model: func(inner llm.Model) llm.Model {
		return &summarizing{&model{inner, cut}, cmp.Or(m, inner), s.page}
	}}
}

// summarizing is a model that also asks a writer of summaries, at its price.
type summarizing struct {
	*model
	writer llm.Model
	page   string
}

var _ llm.Pricer = (*summarizing)(nil)

// MaxCost returns the cost of the request and of a summary of all its messages. It is unknown if
// one of the two prices is.
func (m *summarizing) MaxCost(req *llm.Request) (dollars float64, known bool) {
	answers, ok := llm.As[llm.Pricer](m.inner)
	writes, known := llm.As[llm.Pricer](m.writer)
	if !ok || !known {
		return 0, false
	}
	if dollars, ok = answers.MaxCost(req); !ok {
		return 0, false
	}
	more, known := writes.MaxCost(&llm.Request{Messages: append([]llm.Message{llm.System(m.page)}, req.Messages...)})
	return dollars + more, known
}

const maxSummaries = 1000

// summaries are the summaries of one middleware, by the messages that they replace. It may be used
// concurrently.
type summaries struct {
	model  llm.Model
	page   string
	tokens int

	mu     sync.Mutex
	cached map[string]*summary
	order  []string // the order of kept, the oldest first
}

// summary is made by one request, while others that want it wait.
type summary struct {
	done chan struct{} // closed when it is made, or could not be
	text string        // empty means that it could not be made
}

// of returns the summary of the messages before the last cut, and the usage and the number of the
// requests for it. With an error it returns the latest
// summary of a part of them, or "".
func (s *summaries) of(ctx context.Context, inner llm.Model, req *llm.Request, c *conversation,
	cuts []cut) (text string, asked llm.Response, err error) {
	keys := c.keys(cuts)
	last := len(cuts) - 1
	before, from := "", 0
	for i := last; i > 0; i-- {
		if t, ok := s.lookup(ctx, keys[i]); ok && t != "" {
			if i == last {
				return t, asked, nil
			}
			before, from = t, cuts[i].turn
			break
		}
	}
	mine, begun := s.begin(keys[last])
	if !begun { // another run has started it
		text, _ := s.lookup(ctx, keys[last])
		return text, asked, nil
	}
	text, asked, err = s.write(ctx, inner, req, before, c.messages[c.starts[from]:c.starts[cuts[last].turn]])
	s.end(keys[last], mine, text)
	if err != nil {
		text = before
	}
	return text, asked, err
}

// lookup returns the summary under key. It waits for a summary in progress.
func (s *summaries) lookup(ctx context.Context, key string) (string, bool) {
	s.mu.Lock()
	e := s.cached[key]
	s.mu.Unlock()
	if e == nil {
		return "", false
	}
	select {
	case <-e.done:
		return e.text, true
	case <-ctx.Done():
		return "", false
	}
}

func (s *summaries) begin(key string) (*summary, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cached[key] != nil {
		return nil, false
	}
	e := &summary{done: make(chan struct{})}
	s.cached[key] = e
	return e, true
}

// end stores a summary. A summary that could not be made is removed, so that the next request tries
// again.
func (s *summaries) end(key string, e *summary, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.text = text
	close(e.done)
	if text == "" {
		delete(s.cached, key)
		return
	}
	if s.order = append(s.order, key); len(s.order) > maxSummaries {
		delete(s.cached, s.order[0])
		s.order = s.order[1:]
	}
}

// keys names what each cut leaves out, by its content.
func (c *conversation) keys(cuts []cut) []string {
	keys := make([]string, len(cuts))
	h := sha256.New()
	e := json.NewEncoder(h)
	at := c.head
	for i, k := range cuts {
		for ; at < c.starts[k.turn]; at++ {
			_ = e.Encode(c.messages[at]) // a message has a JSON form
		}
		keys[i] = hex.EncodeToString(h.Sum(nil))
	}
	return keys
}

// write asks for a summary of messages, which follow what before sums up.
func (s *summaries) write(ctx context.Context, inner llm.Model, req *llm.Request, before string,
	messages []llm.Message) (string, llm.Response, error) {
	var b strings.Builder
	if before != "" {
		fmt.Fprintf(&b, "Notes of an earlier part:\n\n%s\n\n", before)
	}
	b.WriteString("The part to take notes of:\n")
	for _, m := range messages {
		tell(&b, m)
	}
	b.WriteString("\nEnd of the part. Write the notes.")
	ask := &llm.Request{Messages: []llm.Message{llm.System(s.page), llm.User(b.String())}}
	if req.Key != "" {
		ask.Key = req.Key + "/summary"
	}
	m := s.model
	if m == nil {
		m, ask.Model = inner, req.Model
	}
	resp, err := llm.Complete(ctx, m, ask)
	if err != nil {
		return "", *resp, err
	}
	resp.Requests++ // this one
	text := strings.TrimSpace(resp.Message.Text())
	switch {
	case resp.Finish.Cut():
		return "", *resp, fmt.Errorf("it was cut (%s)", resp.Finish)
	case text == "":
		return "", *resp, fmt.Errorf("it is empty")
	}
	return text, *resp, nil
}

const maxTold = 4 << 10 // bytes of a result that a summary is made of

// tell writes m as text.
func tell(b *strings.Builder, m llm.Message) {
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			fmt.Fprintf(b, "\n[%s] %s\n", m.Role, p.Text)
		case llm.Media:
			fmt.Fprintf(b, "\n[%s] (a medium: %s %s)\n", m.Role, p.MIME, p.URL)
		case llm.ToolCall:
			fmt.Fprintf(b, "\n[call] %s %s\n", p.Name, p.Args)
		case llm.ToolResult:
			text, name := p.Text(), "result"
			if p.IsError {
				name = "failed"
			}
			if len(text) > maxTold {
				text = strings.ToValidUTF8(text[:maxTold/2], "") + "\n…\n" + strings.ToValidUTF8(text[len(text)-maxTold/2:], "")
			}
			fmt.Fprintf(b, "\n[%s] %s\n", name, text)
		}
	}
}
