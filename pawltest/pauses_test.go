package pawltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/provider/anthropic"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// codeRequests is the number of requests of codeRun: one of them continues a paused turn.
const codeRequests = 7

// codeRun is a conversation with Anthropic in which code in the server's container calls a tool,
// and in which the server pauses its turn.
func codeRun() *script.Model {
	block := func(raw string) llm.Part {
		return llm.Reasoning{Opaque: &llm.Opaque{Provider: "anthropic", Data: json.RawMessage(raw)}}
	}
	container := block(`{"container":"container_1"}`)
	code := func(id string) llm.Part {
		return block(`{"type":"server_tool_use","id":"` + id + `","name":"code_execution","input":{"code":"await look()"}}`)
	}
	ran := func(id string) llm.Part {
		return block(`{"type":"code_execution_tool_result","tool_use_id":"` + id + `","content":{"type":"code_execution_result","stdout":"seen","stderr":"","return_code":0,"content":[]}}`)
	}
	call := func(n int, code string) llm.Part {
		c := llm.ToolCall{ID: fmt.Sprint("toolu_", n), Name: "look", Args: fmt.Appendf(nil, `{"n":%d}`, n)}
		if code != "" {
			c.Opaque = &llm.Opaque{Provider: "anthropic", Data: json.RawMessage(`{"caller":{"type":"code_execution_20250825","tool_id":"` + code + `"}}`)}
		}
		return c
	}
	turn := func(parts ...llm.Part) script.Turn { return script.Turn{Parts: parts} }
	paused := turn(ran("srvtoolu_2"), block(`{"type":"server_tool_use","id":"srvtoolu_3","name":"web_search","input":{"query":"x"}}`), container)
	paused.Finish = "pause_turn"
	return script.New(
		turn(llm.Text{Text: "I write a program."}, code("srvtoolu_1"), call(1, "srvtoolu_1"), container),
		turn(call(2, "srvtoolu_1"), call(3, "srvtoolu_1"), container),
		turn(ran("srvtoolu_1"), llm.Text{Text: "And another one."}, code("srvtoolu_2"), call(4, "srvtoolu_2"), container),
		turn(call(5, "srvtoolu_2"), container),
		paused,
		script.Func(func(req *llm.Request) script.Turn {
			// the rest of the paused reply, or the next reply
			if req.Messages[len(req.Messages)-1].Role == llm.RoleAssistant {
				return turn(block(`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_3","content":[]}`),
					llm.Text{Text: "Now without a program."}, call(6, ""))
			}
			return script.Say("That is all.")
		}))
}

// codeAgent asks the simulator at url, and counts the calls of its tool by argument.
func codeAgent(url string, calls map[int]int) *pawl.Agent {
	var mu sync.Mutex
	look := pawl.Func("look", "Looks.", func(_ context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		calls[in.N]++
		return fmt.Sprint("seen ", in.N), nil
	})
	look.Effect = pawl.EffectRead
	own := `{"betas":["advanced-tool-use-2025-11-20"],"tools":[{"type":"code_execution_20250825","name":"code_execution"},{"type":"web_search_20250305","name":"web_search"},` +
		`{"name":"look","description":"Looks.","input_schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},"allowed_callers":["direct","code_execution_20250825"]}]}`
	options := map[string]json.RawMessage{"anthropic": json.RawMessage(own)}
	return &pawl.Agent{Tools: []pawl.Toolset{look}, Settings: llm.Settings{Options: options},
		Model: anthropic.New("claude-sonnet-4-5", &anthropic.Options{BaseURL: url, Key: "k",
			HTTP: durable.Transport(&http.Transport{DisableKeepAlives: true})})}
}

// mortal is the journal of a process that is gone after a number of writes. Its lease is released,
// so that the next process need not wait.
type mortal struct {
	store.Journal
	left int
}

var errGone = errors.New("the process is gone")

func (j *mortal) AppendJournal(ctx context.Context, l store.Lease, c *store.JournalChange,
	records ...store.Record) (int64, error) {
	if j.left--; j.left < 0 {
		return 0, errGone
	}
	return j.Journal.AppendJournal(ctx, l, c, records...)
}

// A conversation in which code calls a tool and a turn pauses takes seven requests, whole and
// streamed, each in the container of the first. A run that dies after any write is resumed: only a
// reply that was not stored is requested again.
func TestCodeCallsAndPauses(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("stream ", stream), func(t *testing.T) {
			var want []llm.Message
			deaths, repeated := 0, 0
			for at := 1000; at > 0; at-- {
				calls := map[int]int{}
				s, err := pawltest.NewSimulator(codeRun(), nil)
				if err != nil {
					t.Fatal(err)
				}
				run := func(eng *durable.Engine) (*pawl.Result, error) {
					r := eng.Runner("r", codeAgent(s.URL, calls))
					if stream {
						return pawl.Collect(r.Stream(t.Context(), llm.User("go")), nil)
					}
					return r.Run(t.Context(), llm.User("go"))
				}
				journal := new(store.MemoryJournal)
				process := &mortal{Journal: journal, left: at}
				res, err := run(&durable.Engine{Journal: process})
				lost := 0
				if at < 1000 && err != nil {
					deaths++
					eng := &durable.Engine{Journal: journal}
					lost = len(s.Received()) - stored(t, eng)
					repeated += lost
					res, err = run(eng)
				}
				if err != nil || res.Text() != "That is all." {
					t.Fatalf("%+v, %v", res, err)
				}
				if want == nil {
					want = res.Messages
					at -= process.left // the last write
				}
				if diff := cmp.Diff(want, res.Messages); diff != "" {
					t.Errorf("after %d writes the conversation differs:\n%s", at, diff)
				}
				got := s.Received()
				if len(got) != codeRequests+lost || lost > 2 || len(calls) != 6 {
					t.Errorf("after %d writes: %d requests, want %d; %d were not stored; calls %v", at, len(got), codeRequests+lost, lost, calls)
				}
				for i, r := range got {
					if named := strings.Contains(string(r.Body), `"container":"container_1"`); named != (i > 0) && lost == 0 {
						t.Errorf("request %d names the container: %v", i+1, named)
					}
				}
				s.Close()
			}
			t.Logf("%d deaths, %d requests repeated", deaths, repeated)
			if deaths < 5 {
				t.Errorf("%d deaths are too few", deaths)
			}
		})
	}
}

// While code waits for results, the API accepts nothing else: the words of a limit, or of the user,
// are sent later, with a notice.
func TestCodeCallsAtLimit(t *testing.T) {
	s, err := pawltest.NewSimulator(codeRun(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	agent := codeAgent(s.URL, map[int]int{})
	agent.Limits.Rounds = 1
	var notices []string
	res, err := runtest.Ended(pawl.Collect(agent.Stream(t.Context(), llm.User("go")), func(e pawl.Event) {
		if e.Kind == pawl.EventNotice {
			notices = append(notices, e.Code)
		}
	}))
	if err != nil || res.Stop != pawl.StopLimit || len(s.Received()) != 2 || !slices.Contains(notices, "message_held") {
		t.Errorf("%+v, %v; %d requests, notices %q", res, err, len(s.Received()), notices)
	}
}

// stored returns the number of requests whose replies are in the journal.
func stored(t *testing.T, eng *durable.Engine) (n int) {
	t.Helper()
	x, err := eng.Export(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range x.Replies {
		n += 1 + r.Response.Requests
	}
	return n
}
