package server_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/store"
)

// held is a model that stops within the second reply of a run until the gate is open.
type held struct {
	llm.Model
	gate  chan struct{}
	waits chan struct{} // has an element for each reply that has stopped
}

func (m *held) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		n := 0
		for d, err := range m.Model.Stream(ctx, req) {
			if n++; n == 40 && script.Results(req) != nil {
				m.waits <- struct{}{}
				select {
				case <-m.gate:
				case <-ctx.Done():
					yield(d, ctx.Err())
					return
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// story is the text of a reply.
func story(run string, part int) string {
	var b strings.Builder
	for n := range 200 {
		fmt.Fprintf(&b, "%s.%d.%d ", run, part, n)
	}
	return b.String()
}

// reader is a page: what it shows of a run, in the form of one protocol.
type reader struct {
	agui    bool
	texts   map[string]string
	order   []string
	results []string
	rests   int // fragments that arrived together, because the reader was slow
	over    bool
}

// take applies a frame as the client of the protocol does.
func (r *reader) take(frame []byte) error {
	var f struct {
		Type, ID, MessageID, Delta, ToolCallID, Output, Content string
		Messages                                                []struct{ ID string }
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		return err
	}
	id := f.ID + f.MessageID
	switch f.Type {
	case "start":
		r.texts, r.order, r.results = map[string]string{}, nil, nil
	case "MESSAGES_SNAPSHOT":
		has := func(id string) bool {
			return slices.ContainsFunc(f.Messages, func(m struct{ ID string }) bool { return m.ID == id })
		}
		r.order = slices.DeleteFunc(r.order, func(id string) bool { return !has(id) })
		r.results = nil
		for id := range r.texts {
			if !has(id) {
				delete(r.texts, id)
			}
		}
	case "text-delta", "TEXT_MESSAGE_CONTENT":
		if _, known := r.texts[id]; !known {
			r.order = append(r.order, id)
		}
		r.texts[id] += f.Delta
		if len(f.Delta) > 64 {
			r.rests++
		}
	case "tool-output-available", "TOOL_CALL_RESULT":
		r.results = append(r.results, f.Output+f.Content)
	case "finish", "RUN_FINISHED":
		r.over = true
	case "error", "RUN_ERROR":
		return fmt.Errorf("an error: %s", frame)
	}
	return nil
}

// shows returns the texts and results.
func (r *reader) shows() string {
	var all []string
	for _, id := range r.order {
		all = append(all, r.texts[id])
	}
	return strings.Join(all, "|") + "|" + strings.Join(r.results, "|")
}

// request returns the first request of the reader, or the request that resumes.
func (r *reader) request(ctx context.Context, url, run string, first bool) (*http.Request, error) {
	method, body := "POST", `{"id":"`+run+`","messages":[{"id":"u","role":"user","parts":[{"type":"text","text":"`+run+`"}]}]}`
	path := "/v1/ui/clerk"
	if r.agui {
		path = "/v1/agui/clerk"
		messages := []map[string]any{{"id": "u", "role": "user", "content": run}}
		for _, id := range r.order {
			messages = append(messages, map[string]any{"id": id, "role": "assistant", "content": r.texts[id]})
		}
		b, err := json.Marshal(map[string]any{"threadId": run, "runId": run, "protocolVersion": "1.0", "messages": messages})
		if err != nil {
			return nil, err
		}
		body = string(b)
	} else if !first {
		method, path, body = "GET", path+"/"+run+"/stream", ""
	}
	req, err := http.NewRequestWithContext(ctx, method, url+path, strings.NewReader(body))
	if err == nil && body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, err
}

// read takes frames until the stream ends. After some of them it waits for the rest.
func (r *reader) read(body io.Reader, some int, rest <-chan struct{}) error {
	b := bufio.NewReaderSize(body, 512)
	for n := 0; ; n++ {
		if n == some {
			<-rest
		}
		line, err := b.ReadSlice('\n')
		for err == bufio.ErrBufferFull {
			var rest []byte
			line = slices.Clone(line)
			rest, err = b.ReadSlice('\n')
			line = append(line, rest...)
		}
		if err != nil {
			return err
		}
		if frame, ok := strings.CutPrefix(strings.TrimSpace(string(line)), "data: "); ok && frame != "[DONE]" {
			if err := r.take([]byte(frame)); err != nil {
				return err
			}
		}
	}
}

// narrow accepts connections with little room for what was not read.
type narrow struct{ net.Listener }

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(4 << 10)
	}
	return c, err
}

// Pages with slow readers lose their server while their runs are at work, and resume at the next
// one: each shows its text once and whole, and each call acts once.
func TestSlowReadersBehindARestart(t *testing.T) {
	n := soak.N(30, 500)
	var mu sync.Mutex
	paid := map[string]int{}
	pay := pawl.Func("pay", "Pays.", func(_ context.Context, in struct {
		Run string `json:"run"`
	}) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		paid[in.Run]++
		return "paid " + in.Run, nil
	})
	journal := new(store.MemoryJournal)
	turn := func(req *llm.Request) script.Turn {
		run := req.Messages[0].Text()
		if script.Results(req) != nil {
			return script.Say(story(run, 2))
		}
		return script.Together(script.Say(story(run, 1)), script.Call("pay", map[string]string{"run": run}))
	}
	options := func(gate chan struct{}) (*held, func(*options)) {
		script := &script.Model{Turns: []script.Turn{script.Loop(script.Func(turn))}}
		model := &held{gate: gate, waits: make(chan struct{}, n), Model: script}
		return model, func(o *options) {
			o.Agents = []*pawl.Agent{{Name: "clerk", Model: model, Tools: []pawl.Toolset{pay}}}
			o.Journal, o.Limits.Fragments, o.Times.Wait = journal, 2<<10, time.Minute
		}
	}
	model, change := options(make(chan struct{}))
	first := serve(t, change)
	h := httptest.NewUnstartedServer(first.s)
	h.Listener = narrow{h.Listener}
	h.Start()
	defer h.Close()
	dial := func(ctx context.Context, network, at string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, at)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial}}
	defer client.CloseIdleConnections()
	closed := make(chan struct{})
	readers := make([]*reader, n)
	var began, broke sync.WaitGroup
	faults := make(chan string, 4*n)
	for i := range n {
		run := fmt.Sprintf("run%d", i)
		r := &reader{agui: i%2 == 0, texts: map[string]string{}}
		readers[i] = r
		began.Add(1)
		broke.Go(func() {
			once := sync.OnceFunc(began.Done)
			defer once()
			req, err := r.request(t.Context(), h.URL, run, true)
			if err != nil {
				faults <- err.Error()
				return
			}
			res, err := client.Do(req)
			if err != nil || res.StatusCode != 200 {
				faults <- fmt.Sprintf("%s: %v %v", run, res, err)
				return
			}
			defer res.Body.Close()
			once()
			if err := r.read(res.Body, 10+i%200, closed); err == io.EOF {
				faults <- run + ": the stream of a run that goes on has a plain end"
			} else if strings.HasPrefix(err.Error(), "an error") {
				faults <- err.Error()
			}
		})
	}
	began.Wait()
	for range n { // the runs go on without their readers
		select {
		case <-model.waits:
		case fault := <-faults:
			t.Fatal(fault)
		}
	}
	if err := first.s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	close(closed)
	broke.Wait()
	rests := 0
	for _, r := range readers {
		rests += r.rests
		r.rests = 0
	}
	if rests == 0 {
		t.Error("no reader was slow")
	}

	gate := make(chan struct{})
	close(gate)
	_, change = options(gate)
	second := serve(t, change)
	var done sync.WaitGroup
	for i, r := range readers {
		run := fmt.Sprintf("run%d", i)
		done.Go(func() {
			req, err := r.request(t.Context(), second.url, run, false)
			if err != nil {
				faults <- err.Error()
				return
			}
			res, err := second.client.Do(req)
			if err != nil {
				faults <- err.Error()
				return
			}
			defer res.Body.Close()
			if res.StatusCode != 200 { // 204: the run is over
				faults <- fmt.Sprintf("%s: %d", run, res.StatusCode)
			} else if err := r.read(res.Body, -1, nil); err != io.EOF {
				faults <- fmt.Sprintf("%s: %v", run, err)
			}
		})
	}
	done.Wait()
	close(faults)
	for fault := range faults {
		t.Error(fault)
	}
	for i, r := range readers {
		run := fmt.Sprintf("run%d", i)
		if want := story(run, 1) + "|" + story(run, 2) + "|paid " + run; r.shows() != want || !r.over {
			t.Fatalf("%s shows\n%s\nwant\n%s", run, r.shows(), want)
		}
		if paid[run] != 1 {
			t.Errorf("%s paid %d times", run, paid[run])
		}
	}
	t.Logf("%d streams, of which the slow ones got %d rests", n, rests)

	// the control: a reader that misses a frame, or takes one twice, shows something else
	for _, times := range []int{0, 2} {
		r := &reader{texts: map[string]string{}}
		for k, word := range strings.SplitAfter(story("x", 1), " ") {
			for range map[bool]int{true: times, false: 1}[k == 50] {
				b, err := json.Marshal(map[string]string{"type": "text-delta", "id": "1", "delta": word})
				if err != nil || r.take(b) != nil {
					t.Fatal(err)
				}
			}
		}
		if r.shows() == story("x", 1)+"|" {
			t.Error("the reader does not see a lost or repeated frame")
		}
	}
}
