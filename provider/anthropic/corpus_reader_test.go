package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/internal/test/wiretest"
)

type wireUsage struct {
	Input      *int `json:"input_tokens"`
	Output     *int `json:"output_tokens"`
	CacheRead  *int `json:"cache_read_input_tokens"`
	CacheWrite *int `json:"cache_creation_input_tokens"`
	Details    *struct {
		Thinking int `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	Iterations []struct {
		Type string `json:"type"`
		wireUsage
	} `json:"iterations"`
}

// over puts the later figures over the earlier ones.
func (u *wireUsage) over(later *wireUsage) {
	if later == nil {
		return
	}
	for _, f := range []struct{ to, from **int }{{&u.Input, &later.Input}, {&u.Output, &later.Output},
		{&u.CacheRead, &later.CacheRead}, {&u.CacheWrite, &later.CacheWrite}} {
		if *f.from != nil {
			*f.to = *f.from
		}
	}
	if later.Iterations != nil {
		u.Iterations = later.Iterations
	}
	if later.Details != nil {
		u.Details = later.Details
	}
}

func (u *wireUsage) figures() (c wiretest.Figures) {
	n := func(p *int) int {
		if p == nil {
			return 0
		}
		return *p
	}
	c = wiretest.Figures{Output: n(u.Output), CacheRead: n(u.CacheRead), CacheWrite: n(u.CacheWrite)}
	c.Input = n(u.Input) + c.CacheRead + c.CacheWrite
	for _, one := range u.Iterations { // the figures above leave them out
		if one.Type == "compaction" {
			f := one.figures()
			c = wiretest.Figures{Input: c.Input + f.Input, Output: c.Output + f.Output,
				CacheRead: c.CacheRead + f.CacheRead, CacheWrite: c.CacheWrite + f.CacheWrite}
		}
	}
	if u.Details != nil {
		c.Reasoning = u.Details.Thinking
	}
	return c
}

type wireBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Caller    *struct {
		Type string `json:"type"`
	} `json:"caller"`
	partial string
}

type wireMessage struct {
	Type       string          `json:"type"`
	Content    []wireBlock     `json:"content"`
	StopReason string          `json:"stop_reason"`
	Usage      *wireUsage      `json:"usage"`
	Error      json.RawMessage `json:"error"`
	Container  *struct {
		ID string `json:"id"`
	} `json:"container"`
}

func errorText(body []byte) string {
	var e struct {
		Error   struct{ Message string }
		Message string
	}
	if json.Unmarshal(body, &e) != nil {
		return strings.TrimSpace(string(body))
	}
	return e.Error.Message + e.Message
}

// read reads an answer.
func read(streaming bool, body string) (wiretest.Reading, error) {
	var m wireMessage
	if !streaming {
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			return wiretest.Reading{}, err
		}
		if m.Usage == nil {
			m.Usage = &wireUsage{}
		}
		return decide(m), nil
	}
	var blocks []*wireBlock
	open := map[int]*wireBlock{}
	stopped := false
	m.Usage = &wireUsage{}
	body = strings.ReplaceAll(strings.ReplaceAll(body, "\r\n", "\n"), "\r", "\n")
	for i, line := range strings.Split(body, "\n") {
		doc, ok := strings.CutPrefix(line, "data:")
		if !ok {
			continue
		}
		var e struct {
			Type    string
			Index   int
			Message *wireMessage
			Block   *wireBlock `json:"content_block"`
			Delta   struct {
				Text, Thinking, Signature string
				Partial                   string `json:"partial_json"`
				StopReason                string `json:"stop_reason"`
				Container                 *struct{ ID string }
			}
			Usage *wireUsage
		}
		if err := json.Unmarshal([]byte(doc), &e); err != nil {
			return wiretest.Reading{}, fmt.Errorf("line %d: %w", i, err)
		}
		switch e.Type {
		case "message_start":
			// a second start: earlier events do not count
			blocks, open = nil, map[int]*wireBlock{}
			m.Usage = &wireUsage{}
			m.Usage.over(e.Message.Usage)
			m.Container = e.Message.Container
		case "content_block_start":
			blocks = append(blocks, e.Block)
			open[e.Index] = e.Block
		case "content_block_delta":
			b := open[e.Index]
			b.Text += e.Delta.Text
			b.Thinking += e.Delta.Thinking
			b.Signature += e.Delta.Signature
			b.partial += e.Delta.Partial
		case "message_delta":
			m.StopReason = e.Delta.StopReason
			m.Usage.over(e.Usage)
			if e.Delta.Container != nil {
				m.Container = &struct {
					ID string `json:"id"`
				}{e.Delta.Container.ID}
			}
		case "message_stop":
			stopped = true
		case "error":
			return wiretest.Reading{Err: errorText([]byte(doc))}, nil
		}
	}
	for _, b := range blocks {
		if b.partial != "" {
			b.Input = json.RawMessage(b.partial)
		}
		m.Content = append(m.Content, *b)
	}
	r := decide(m)
	r.Broken = !stopped
	return r, nil
}

func decide(m wireMessage) wiretest.Reading {
	thoughts := ""
	r := wiretest.Reading{Reasoning: &thoughts, Usage: m.Usage.figures()}
	if m.Type == "error" {
		r.Err = "an error"
		return r
	}
	for _, b := range m.Content {
		switch b.Type {
		case "text":
			r.Text += b.Text
		case "thinking":
			thoughts += b.Thinking
			if b.Signature != "" {
				r.Kept = append(r.Kept, b.Type)
			}
		case "tool_use":
			if b.Caller != nil && b.Caller.Type != "direct" && m.StopReason != "tool_use" {
				r.Kept = append(r.Kept, b.Type)
				continue
			}
			r.Calls = append(r.Calls, b.ID+" "+b.Name+" "+wiretest.Canonical(b.Input))
		default:
			r.Kept = append(r.Kept, b.Type)
		}
	}
	if m.Container != nil && m.Container.ID != "" {
		r.Kept = append(r.Kept, "container "+m.Container.ID)
	}
	r.Finish = map[string]string{"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls", "refusal": "content_filter"}[m.StopReason]
	if r.Finish == "" {
		r.Finish = "other"
	}
	if len(r.Calls) > 0 && (r.Finish == "stop" || r.Finish == "other") {
		r.Finish = "tool_calls"
	}
	return r
}
