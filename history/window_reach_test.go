package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
	"github.com/pawl-go/pawl/history"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// planted is a random transcript with a token in each of its texts.
type planted struct {
	rand   *rand.Rand
	msgs   []llm.Message
	tokens []string
	reply  int
}

// text returns some words with a new token in them.
func (p *planted) text() string {
	token := fmt.Sprintf("TOKEN%06dX", len(p.tokens))
	p.tokens = append(p.tokens, token)
	before := strings.Repeat("some words\n", p.rand.IntN(40))
	if p.rand.IntN(60) == 0 {
		before = strings.Repeat("long lines of words ", 2_000)
	}
	return before + token + strings.Repeat(" and more", p.rand.IntN(20))
}

// round adds a reply with calls and their results.
func (p *planted) round() {
	p.reply++
	reply := llm.Assistant()
	if p.rand.IntN(2) == 0 {
		reply.Parts = append(reply.Parts, llm.Text{Text: p.text()})
	}
	var results []llm.ToolResult
	for i := range 1 + p.rand.IntN(3) {
		args, _ := json.Marshal(map[string]any{"n": p.rand.IntN(50)}) // some calls repeat others
		if p.rand.IntN(2) == 0 {
			args, _ = json.Marshal(map[string]any{"query": p.text(), "n": p.reply})
		}
		id := fmt.Sprintf("c%d", i)
		name := []string{"search", "write"}[p.rand.IntN(2)]
		reply.Parts = append(reply.Parts, llm.ToolCall{ID: id, Name: name, Args: args})
		results = append(results, llm.ToolResult{
			CallID:  id,
			Parts:   []llm.Part{llm.Text{Text: p.text()}},
			IsError: p.rand.IntN(9) == 0,
			Key:     llm.Key(fmt.Sprintf("run/%d/%d", p.reply, i)),
		})
	}
	p.msgs = append(p.msgs, reply, llm.Results(results...))
}

// plant returns a random transcript of at least n messages, which ends with a message of the user.
func plant(seed uint64, n int) *planted {
	p := &planted{rand: rand.New(rand.NewPCG(seed, 11))}
	p.msgs = append(p.msgs, llm.User("The task: "+p.text()))
	for len(p.msgs) < n {
		p.round()
		switch p.rand.IntN(12) {
		case 0: // a message to a run between two steps
			p.msgs = append(p.msgs, llm.User(p.text()))
		case 1: // the end of a turn
			p.reply++
			p.msgs = append(p.msgs, llm.Assistant(llm.Text{Text: p.text()}), llm.User(p.text()))
		}
	}
	if p.msgs[len(p.msgs)-1].Role != llm.RoleUser {
		p.msgs = append(p.msgs, llm.User(p.text()))
	}
	return p
}

func (p *planted) tools() []pawl.Toolset {
	tool := func(name string, effect pawl.Effect) *pawl.Tool {
		return &pawl.Tool{Name: name, Description: "Works.", Input: []byte(`{"type":"object"}`), Effect: effect,
			Run: func(context.Context, llm.ToolCall) (llm.ToolResult, error) { return llm.TextResult(""), nil }}
	}
	return []pawl.Toolset{tool("search", pawl.EffectRead), tool("write", pawl.EffectWrite), artifact.Reader{}}
}

var (
	namedCall = regexp.MustCompile(`result_read (\{[^}]*\})`)
	namedID   = regexp.MustCompile(`\b(?:run/\d+/\d+|reply/\d+|user/\d+)\b`)
	pageOf    = regexp.MustCompile(`^\[(\S+): .*; (?:this is the end|continue with (offset|line) (\d+))\]\n`)
)

// crawl is a model that makes each call of result_read that it reads of, once.
type crawl struct {
	allowed func(id string) bool // nil means all
	todo    []string
	made    map[string]bool
	seen    map[string]string // what was read, by id
}

// read takes from a text the calls that it names.
func (c *crawl) read(text string) {
	add := func(id, args string) {
		if !c.made[args] && (c.allowed == nil || c.allowed(id)) {
			c.made[args] = true
			c.todo = append(c.todo, args)
		}
	}
	for _, m := range namedCall.FindAllStringSubmatch(text, -1) {
		var in struct{ ID string }
		if json.Unmarshal([]byte(m[1]), &in) == nil && in.ID != "" {
			add(in.ID, m[1])
		}
	}
	for _, id := range namedID.FindAllString(text, -1) {
		add(id, fmt.Sprintf(`{"id":%q}`, id))
	}

	m := pageOf.FindStringSubmatch(text)
	if m == nil {
		c.seen[""] += text
		return
	}
	c.seen[m[1]] += strings.TrimPrefix(text, m[0]) // a token may stand on two pages
	if m[2] != "" {
		add(m[1], fmt.Sprintf(`{"id":%q,%q:%s}`, m[1], m[2], m[3]))
	}
}

// turn returns the next calls.
func (c *crawl) turn(req *llm.Request) script.Turn {
	if last := req.Messages[len(req.Messages)-1]; last.Role == llm.RoleTool {
		for _, p := range last.Parts {
			c.read(p.(llm.ToolResult).Text())
		}
	}
	if len(c.todo) == 0 {
		return script.Say("all read")
	}
	n := min(len(c.todo), 60)
	var turn script.Turn
	for i, args := range c.todo[:n] {
		turn.Parts = append(turn.Parts, llm.ToolCall{ID: fmt.Sprint("r", i), Name: "result_read", Args: []byte(args)})
	}
	c.todo = slices.Clone(c.todo[n:])
	return turn
}

// missing returns the tokens that neither the visible context of p nor what it leads to has.
func (p *planted) missing(t *testing.T, allowed func(id string) bool) (missing []string, requestBytes int) {
	t.Helper()
	spy := script.New(script.Loop(script.Say("ok")))
	c := &crawl{allowed: allowed, made: map[string]bool{}, seen: map[string]string{}}

	// What is visible: the request that Window sends of the transcript.
	agent := &pawl.Agent{Model: spy, Tools: p.tools(),
		Middleware: []pawl.Middleware{history.Window(&history.WindowOptions{Tokens: 20_000})}}
	if _, err := agent.Run(t.Context(), p.msgs...); err != nil {
		t.Fatal(err)
	}
	for _, m := range spy.Requests()[0].Messages {
		requestBytes += len(form(m))
		c.read(m.Text())
		for _, part := range m.Parts {
			switch part := part.(type) {
			case llm.ToolCall:
				c.read(string(part.Args))
			case llm.ToolResult:
				c.read(part.Text())
			}
		}
	}

	// What it leads to: the same transcript, whole, with a model that reads on.
	reader := &pawl.Agent{Model: script.New(script.Loop(script.Func(c.turn))), Tools: p.tools(),
		Limits: pawl.Limits{Rounds: 1_000, LoopThreshold: -1}}
	if _, err := reader.Run(t.Context(), p.msgs...); err != nil {
		t.Fatal(err)
	}
	seen := strings.Join(slices.Collect(maps.Values(c.seen)), "\n")
	for _, token := range p.tokens {
		if !strings.Contains(seen, token) {
			missing = append(missing, token)
		}
	}
	return missing, requestBytes
}

// mostBytes is the size of 20,000 tokens, which are the window, at 3.4 bytes each.
const mostBytes = 68_000

// All of a long transcript is reachable by calls that the request names: the results,
// the arguments, the texts of the model and of the user. The control has only the ids of results
// that the request names, as a record without a list has.
func TestWindowLosesNothing(t *testing.T) {
	soak.Sequential(t)
	for seed := range uint64(2) {
		p := plant(seed, soak.N(300, 2_000))
		missing, size := p.missing(t, nil)
		t.Logf("%d messages, %d tokens, the request has %d bytes", len(p.msgs), len(p.tokens), size)
		if len(missing) > 0 || size > mostBytes {
			t.Errorf("seed %d: the request has %d bytes, and %d of %d tokens are out of reach: %.200v", seed, size, len(missing),
				len(p.tokens), missing)
		}

		onlyResults := func(id string) bool { return strings.HasPrefix(id, "run/") }
		if lost, _ := p.missing(t, onlyResults); len(lost) < len(p.tokens)/4 {
			t.Errorf("seed %d: the control reaches all but %d of %d tokens", seed, len(lost), len(p.tokens))
		}
	}
}

// Five reads of 30 KB in a step are whole at first sight, in a window of 200k tokens, as long as
// the work goes on. The control is one read of a quarter of the room, which is cut.
func TestWindowReadsWhole(t *testing.T) {
	soak.Sequential(t)
	for _, test := range []struct {
		name        string
		size, calls int
		whole       bool
	}{
		{"five of 30 KB", 30_000, 5, true},
		{"one of 120 KB", 120_000, 1, false},
	} {
		read := pawl.Func("read", "Reads.", func(_ context.Context, in struct {
			N int `json:"n"`
		}) (string, error) {
			half := strings.Repeat("word ", test.size/10)
			return half + fmt.Sprintf("FACT-%d.", in.N) + half, nil
		})
		read.Effect = pawl.EffectRead
		read.MaxResult = -1
		step := 0
		seen := 0
		model := script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
			last := req.Messages[len(req.Messages)-1]
			for i, p := range last.Parts {
				fact := fmt.Sprintf("FACT-%d.", (step-1)*test.calls+i)
				if r, ok := p.(llm.ToolResult); ok && strings.Contains(r.Text(), fact) {
					seen++
				}
			}
			if step == 20 {
				return script.Say("done")
			}
			turn := script.Turn{Usage: &llm.Usage{Input: len(form(req.Messages)) * 10 / 34, Output: 5}}
			for i := range test.calls {
				args, _ := json.Marshal(map[string]int{"n": step*test.calls + i})
				turn.Parts = append(turn.Parts, llm.ToolCall{ID: fmt.Sprint("c", i), Name: "read", Args: args})
			}
			step++
			return turn
		})))
		agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{read, artifact.Reader{}},
			Limits:     pawl.Limits{Rounds: 100},
			Middleware: []pawl.Middleware{history.Window(&history.WindowOptions{Tokens: 200_000, Reserve: 50_000})}}
		if _, err := agent.Run(t.Context(), llm.User("Read all.")); err != nil {
			t.Fatal(err)
		}
		if whole := seen == 20*test.calls; whole != test.whole {
			t.Errorf("%s: %d of %d results are whole at first sight", test.name, seen, 20*test.calls)
		}
	}
}

// A read that is repeated with the same result is answered with the id of the first, as long as
// that is in sight, and a notice counts the repeats. A result that has changed, that is short, or
// that is of a call with an effect, is sent whole.
func TestWindowRepeats(t *testing.T) {
	for _, test := range []struct {
		name    string
		effect  pawl.Effect
		size    int
		changes bool
		line    bool
		want    []string
	}{
		{"same", pawl.EffectRead, 3_000, false, true, []string{`{"new":1,"repeats":1}`, `{"new":1,"repeats":2}`}},
		{"changed", pawl.EffectRead, 3_000, true, false, nil},
		{"short", pawl.EffectRead, 100, false, false, []string{`{"new":1,"repeats":1}`, `{"new":1,"repeats":2}`}},
		{"effect", pawl.EffectWrite, 3_000, false, false, nil},
	} {
		calls := 0
		read := pawl.Func("read", "Reads.", func(context.Context, struct {
			N int `json:"n"`
		}) (string, error) {
			calls++
			text := strings.Repeat("x", test.size)
			if test.changes {
				text += fmt.Sprint(calls)
			}
			return text, nil
		})
		read.Effect = test.effect
		model := script.New(script.Call("read", `{"n":1}`), script.Call("read", `{"n":1}`), script.Call("read", `{"n":1}`),
			script.Say("done"))
		agent := &pawl.Agent{Model: model, Tools: []pawl.Toolset{read, artifact.Reader{}},
			Limits:     pawl.Limits{LoopThreshold: -1},
			Middleware: []pawl.Middleware{history.Window(&history.WindowOptions{Tokens: 20_000})}}
		var got []string
		_, err := pawl.Collect(agent.Stream(t.Context(), llm.User("Read.")), func(e pawl.Event) {
			if e.Kind == pawl.EventNotice && e.Code == history.NoticeWindowRepeated {
				got = append(got, string(e.Data))
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: notices %q, want %q", test.name, got, test.want)
		}
		const line = "[The same 3000 bytes as the result run/1/0 of the same call"
		sent := form(model.Requests()[3].Messages)
		want := 0
		if test.line {
			want = 2
		}
		if n := strings.Count(sent, line); n != want {
			t.Errorf("%s: %d lines in place of results, want %d", test.name, n, want)
		}
	}
}
