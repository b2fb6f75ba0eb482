package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
)

// storedRun is a run that continues without a reader. It ends when end gets a result.
type storedRun struct {
	end      chan *pawl.Result
	id       string
	result   pawl.Result // State returns it
	at       time.Time
	answers  []llm.Decision
	cancels  int
	readErr  error
	writeErr error
}

func (r *storedRun) Stream(ctx context.Context, msgs ...llm.Message) iter.Seq2[pawl.Event, error] {
	return func(yield func(pawl.Event, error) bool) {
		for _, m := range msgs {
			for _, p := range m.Parts {
				if d, ok := p.(llm.Decision); ok {
					r.answers = append(r.answers, d)
				}
			}
		}
		switch {
		case len(r.answers) > 0 && r.writeErr != nil:
			yield(pawl.Event{}, r.writeErr)
		case len(r.answers) > 0 && !yield(pawl.Event{Kind: pawl.EventRunStarted, Run: "run"}, nil):
		default:
			select {
			case res := <-r.end:
				yield(pawl.Event{Kind: pawl.EventRunEnded, Run: "run", Result: res}, nil)
			case <-ctx.Done():
				yield(pawl.Event{}, context.Cause(ctx))
			}
		}
	}
}

func (r *storedRun) State(context.Context) (*pawl.Result, time.Time, time.Time, error) {
	if r.id == "" {
		return nil, r.at, r.at, pawl.ErrNotFound
	}
	res := r.result
	res.Pending = slices.Clone(res.Pending)
	return &res, r.at, r.at.Add(time.Minute), r.readErr
}

func (r *storedRun) Cancel(context.Context) error { r.cancels++; return r.writeErr }

// line speaks with a service over standard input and output in raw JSON.
type line struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

// tasked serves an agent whose runs are r. With stored its calls can become tasks.
func tasked(t *testing.T, r *storedRun, stored bool) *line {
	clerk := &pawl.Agent{Name: "clerk"}
	s := &mcp.Service{Agents: []mcp.Offer{{Agent: clerk, Description: "Works.", Runner: func(id string) pawl.Runner {
		r.id = id
		return r
	}}}}
	if stored {
		s.Task = func(id string) mcp.Task {
			if id != r.id {
				return &storedRun{}
			}
			return r
		}
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- s.ServeStdio(context.Background(), in, out) }()
	t.Cleanup(func() {
		toServer.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return &line{t, toServer, bufio.NewReader(fromServer)}
}

// send sends a request and returns its result or error.
func (l *line) send(method, params, meta string) string {
	l.t.Helper()
	if meta != "" {
		params = strings.TrimPrefix(params+`,"_meta":`+meta, ",")
	}
	fmt.Fprintf(l.in, `{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`+"\n", method, params)
	for {
		b, err := l.out.ReadBytes('\n')
		if err != nil {
			l.t.Fatal(err)
		}
		var got struct {
			ID            json.RawMessage
			Result, Error map[string]any
		}
		if err := json.Unmarshal(b, &got); err != nil {
			l.t.Fatalf("%v: %s", err, b)
		}
		if got.ID == nil {
			continue
		}
		if got.Error != nil {
			got.Result = got.Error
		}
		delete(got.Result, "_meta")
		text, err := json.Marshal(got.Result)
		if err != nil {
			l.t.Fatal(err)
		}
		return string(text)
	}
}

func metaOf(version, caps string) string {
	return fmt.Sprintf(`{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},
		"io.modelcontextprotocol/clientCapabilities":%s}`, version, caps)
}

const taskCaps = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

func done(text string) *pawl.Result {
	return &pawl.Result{Stop: pawl.StopAnswer, Messages: []llm.Message{llm.Assistant(llm.Text{Text: text})}}
}

// A call becomes a task after 5 s, for a client that declares the extension in the request.
func TestTaskAfter(t *testing.T) {
	const answered = `{"content":[{"text":"fine","type":"text"}],"resultType":"complete"}`
	fresh := metaOf("2026-07-28", taskCaps)
	for _, c := range []struct {
		name   string
		after  time.Duration
		meta   string
		stored bool
		task   bool
	}{
		{"short", 4 * time.Second, fresh, true, false},
		{"long", 6 * time.Second, fresh, true, true},
		{"not stored", time.Minute, fresh, false, false},
		{"not declared", time.Minute, metaOf("2026-07-28", `{}`), true, false},
		{"declared null", time.Minute, metaOf("2026-07-28", `{"extensions":{"io.modelcontextprotocol/tasks":null}}`), true, false},
		{"declared before only", time.Minute, metaOf("2026-07-28", `{}`), true, false},
		{"old protocol", time.Minute, "", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &storedRun{end: make(chan *pawl.Result, 1)}
				l := tasked(t, r, c.stored)
				want := answered
				switch c.name {
				case "old protocol":
					l.send("initialize", `"protocolVersion":"2025-11-25","clientInfo":{"name":"raw","version":"1"},"capabilities":`+taskCaps, "")
					fmt.Fprintln(l.in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
					want = `{"content":[{"text":"fine","type":"text"}]}`
				case "declared before only":
					l.send("tools/list", "", fresh)
				}
				time.AfterFunc(c.after, func() { r.end <- done("fine") })
				began := time.Now()
				got := l.send("tools/call", `"name":"clerk","arguments":{"task":"x"}`, c.meta)
				if c.task {
					if took := time.Since(began); took != 5*time.Second || !strings.Contains(got, `"resultType":"task"`) ||
						!strings.Contains(got, `"ttlMs":null`) {
						t.Errorf("after %v: %s", took, got)
					}
					time.Sleep(c.after)
				} else if got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			})
		})
	}
}

// The states of a run as a task.
func TestTaskStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Date(2026, 11, 28, 7, 0, 0, 0, time.UTC)
		r := &storedRun{end: make(chan *pawl.Result, 1), at: at}
		l := tasked(t, r, true)
		meta := metaOf("2026-07-28", taskCaps)
		var made struct{ TaskID string }
		if err := json.Unmarshal([]byte(l.send("tools/call", `"name":"clerk","arguments":{"task":"x"}`, meta)), &made); err != nil {
			t.Fatal(err)
		}
		id := `"taskId":"` + made.TaskID + `"`
		paid := pawl.PendingCall{Key: "run/1/0", Digest: "d1", Call: llm.ToolCall{Name: "pay", Args: json.RawMessage(`{}`)}}
		given := pawl.PendingCall{Key: "run/1/1", Digest: "d2", Passive: true, Call: llm.ToolCall{Name: "locate", Args: json.RawMessage(`{}`)}}
		const form = `{"d1":{"method":"elicitation/create","params":{"message":"May pay run with {}?","mode":"form","requestedSchema":{"properties":{"approve":{"description":"Let it run","title":"Approve","type":"boolean"}},"required":["approve"],"type":"object"}}}}`
		for _, c := range []struct {
			name   string
			result *pawl.Result
			want   string // without the members that are the same for all
		}{
			{"working", nil, `"status":"working","statusMessage":"",`},
			{"answer", done("fine"), `"result":{"content":[{"text":"fine","type":"text"}],"resultType":"complete"},"status":"completed","statusMessage":"",`},
			{"output", &pawl.Result{Stop: pawl.StopAnswer, Output: json.RawMessage(`{"a":1}`)},
				`"result":{"content":[{"text":"{\"a\":1}","type":"text"}],"resultType":"complete","structuredContent":{"a":1}},"status":"completed","statusMessage":"",`},
			{"failed", &pawl.Result{Stop: pawl.StopFailed, Cause: "no model"},
				`"result":{"content":[{"text":"The agent stopped without an answer: no model","type":"text"}],"isError":true,"resultType":"complete"},"status":"completed","statusMessage":"no model",`},
			{"cancelled", &pawl.Result{Stop: pawl.StopCancelled, Cause: "by ann"}, `"status":"cancelled","statusMessage":"by ann",`},
			{"question", &pawl.Result{Stop: pawl.StopPending, Pending: []pawl.PendingCall{paid}}, `"inputRequests":` + form + `,"status":"input_required","statusMessage":"",`},
			{"passive", &pawl.Result{Stop: pawl.StopPending, Pending: []pawl.PendingCall{given}},
				`"status":"working","statusMessage":"locate must be executed by the caller, which MCP does not support.",`},
		} {
			r.result = pawl.Result{}
			if c.result != nil {
				r.result = *c.result
			}
			middle, end, _ := strings.Cut(c.want, `"status`)
			want := `{"createdAt":"2026-11-28T07:00:00Z",` + placed(middle, `"inputRequests`) +
				`"lastUpdatedAt":"2026-11-28T07:01:00Z","pollIntervalMs":2000,` + placed(middle, `"result"`) + `"resultType":"complete","status` + end + id + `,"ttlMs":null}`
			if got := l.send("tasks/get", id, meta); got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, want)
			}
		}

		// Answers reach open questions alone.
		answer := func(key, what string) string {
			return l.send("tasks/update", id+`,"inputResponses":{"`+key+`":`+what+`}`, meta)
		}
		const yes, taken = `{"action":"accept","content":{"approve":true}}`, `{"resultType":"complete"}`
		r.result = pawl.Result{}
		answer("d1", yes) // while it works
		r.result = pawl.Result{Stop: pawl.StopPending, Pending: []pawl.PendingCall{paid, given}}
		for _, key := range []string{"d2", "run/1/0", "other", ""} {
			if got := answer(key, yes); got != taken || len(r.answers) > 0 {
				t.Errorf("the answer to %q: %s, %v", key, got, r.answers)
			}
		}
		for what, approved := range map[string]bool{yes: true, `{"action":"accept"}`: false,
			`{"action":"accept","content":{"approve":"true"}}`: false,
			`{"action":"decline","content":{"approve":true}}`:  false, `{"action":"cancel"}`: false, `{"roots":[]}`: false} {
			r.answers = nil
			got := answer("d1", what)
			if got != taken || len(r.answers) != 1 || r.answers[0].Approve != approved || r.answers[0].Digest != "d1" {
				t.Errorf("%s: %s, %v", what, got, r.answers)
			}
		}

		// Faults of the store are errors of the protocol.
		r.writeErr = errors.New("the disk is full")
		const full = `{"code":-32603,"message":"the disk is full"}`
		got := []string{answer("d1", yes), l.send("tasks/cancel", id, meta)}
		if !slices.Equal(got, []string{full, full}) || r.cancels != 1 {
			t.Errorf("got %q", got)
		}
		r.readErr = r.writeErr
		if got := l.send("tasks/get", id, meta); got != full {
			t.Errorf("got %s", got)
		}
		for params, code := range map[string]string{"": "-32602", `"taskId":7`: "", id + `,"inputResponses":{"d1":7}`: ""} {
			if got := l.send("tasks/update", params, meta); !strings.Contains(got, `"code":`+code) {
				t.Errorf("%s: %s", params, got)
			}
		}
	})
}

// placed returns text if it begins with the name.
func placed(text, name string) string {
	if strings.HasPrefix(text, name) {
		return text
	}
	return ""
}

// A server without stored runs does not have the extension.
func TestNoTasks(t *testing.T) {
	meta := metaOf("2026-07-28", taskCaps)
	for _, stored := range []bool{true, false} {
		l := tasked(t, &storedRun{}, stored)
		if got := strings.Contains(l.send("server/discover", "", meta), `"extensions":{"io.modelcontextprotocol/tasks":{}}`); got != stored {
			t.Errorf("stored %t: offered %t", stored, got)
		}
		if got := strings.Contains(l.send("tasks/get", `"taskId":"x"`, meta), "-32602"); got != stored {
			t.Errorf("stored %t: tasks/get is known %t", stored, got)
		}
		if got := l.send("tasks/get", "", ""); stored && got == "" {
			t.Error("no answer")
		}
	}
}
