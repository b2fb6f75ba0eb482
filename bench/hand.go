package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/pawl-go/pawl/internal/test/speed"
	"github.com/pawl-go/pawl/llm"
)

// hand is the loop that a program without a library has, on net/http and encoding/json. It checks
// no argument, and it has no limit, event or record.
type hand struct {
	task   *task
	client *http.Client
	tools  []speed.Tool
	run1   map[string]func(args []byte) (string, error) // by name
	open   func(*hand) conversation
}

// conversation is the part of the loop that depends on the API.
type conversation interface {
	// post returns the address and the headers of the next request.
	post() (url string, header []string)
	// body returns the next request, for encoding/json.
	body() any
	// whole appends a reply to the conversation. Without calls, text is the answer.
	whole(body io.Reader) (calls []handCall, text string, err error)
	// event reads an event of a streamed reply, and finish ends it as whole does.
	event(data []byte) error
	finish() (calls []handCall, text string, err error)
	// results appends the results of the calls.
	results(calls []handCall, results []string)
}

// handCall is a call of a reply.
type handCall struct {
	id, name string
	args     []byte
}

func newHand(t *task, transport http.RoundTripper) *hand {
	n := t.Tools
	if n == 0 {
		n = 10
	}
	h := &hand{task: t, client: &http.Client{Transport: transport}, tools: speed.Tools(n),
		run1: map[string]func([]byte) (string, error){}}
	for _, tool := range h.tools {
		h.run1[tool.Name] = tool.Run
	}
	switch t.Wire {
	case "responses":
		h.open = openResponses(h)
	case "anthropic":
		h.open = openMessages(h)
	case "gemini":
		h.open = openGemini(h)
	default:
		h.open = openChat(h)
	}
	return h
}

// run makes one run.
func (h *hand) run(ctx context.Context) (string, error) {
	c := h.open(h)
	for range h.task.Job.Rounds + 5 {
		calls, text, err := h.ask(ctx, c)
		if err != nil || len(calls) == 0 {
			return text, err
		}
		results := make([]string, len(calls))
		for i, call := range calls {
			tool := h.run1[call.name]
			if tool == nil {
				return "", fmt.Errorf("there is no tool %q", call.name)
			}
			results[i], err = tool(call.args)
			if err != nil {
				return "", err
			}
		}
		c.results(calls, results)
	}
	return "", errors.New("too many rounds")
}

// ask sends the conversation, and reads the reply.
func (h *hand) ask(ctx context.Context, c conversation) (calls []handCall, text string, err error) {
	body, err := json.Marshal(c.body())
	if err != nil {
		return nil, "", err
	}
	url, header := c.post()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := h.client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return nil, "", fmt.Errorf("%s: %s", res.Status, text)
	}

	if !h.task.Stream {
		calls, text, err = c.whole(res.Body)
		io.Copy(io.Discard, res.Body) // so that the connection is used again
		return calls, text, err
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(make([]byte, 0, 8<<10), 8<<20)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		if err := c.event(data); err != nil {
			return nil, "", err
		}
	}
	if err := lines.Err(); err != nil {
		return nil, "", err
	}
	return c.finish()
}

// history returns the messages before the task, as role and text.
func (h *hand) history() (msgs [][2]string) {
	for _, m := range speed.History(h.task.History) {
		msgs = append(msgs, [2]string{string(m.Role), m.Text()})
	}
	return append(msgs, [2]string{string(llm.RoleUser), speed.Task})
}
