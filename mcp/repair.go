package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage is the maximum size of a server's message.
const maxMessage = 8 << 20

var errTooLong = errors.New("the server sent a message of more than 8 MiB")

// structuredKey is the name under which the exact bytes of a structured result pass the SDK, which
// reads numbers as floating point.
const structuredKey = "pawl/structured"

// repairer processes the messages of a server before the SDK does. The SDK decodes a list of tools
// as one value, so one malformed tool would lose them all, and it drops the original bytes. A
// repairer decodes each tool separately and stores its bytes. It is safe for concurrent use.
type repairer struct {
	mu  sync.Mutex
	raw map[string]json.RawMessage // tools as sent, by name
	bad []Listed                   // tools that cannot be decoded
	on  map[string]int             // progress notifications received, by token
}

// progress counts progress notifications: the SDK delivers them through a queue, in which a result
// overtakes them.
func (m *repairer) progress(b []byte) {
	var n struct {
		Method string
		Params struct{ ProgressToken any }
	}
	if json.Unmarshal(b, &n) != nil || n.Method != "notifications/progress" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	token, _ := n.Params.ProgressToken.(string)
	if _, ok := m.on[token]; ok {
		m.on[token]++
	}
}

// watch starts to count the progress notifications of a token. The returned function ends the count
// and returns it.
func (m *repairer) watch(token string) func() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.on == nil {
		m.on = map[string]int{}
	}
	m.on[token] = 0
	return func() int {
		m.mu.Lock()
		defer m.mu.Unlock()
		n := m.on[token]
		delete(m.on, token)
		return n
	}
}

// rejected returns the tools that cannot be decoded, and clears the list.
func (m *repairer) rejected() []Listed {
	m.mu.Lock()
	defer m.mu.Unlock()
	bad := m.bad
	m.bad = nil
	return bad
}

// tool returns a tool as sent. Nil means that it was not sent.
func (m *repairer) tool(name string) json.RawMessage {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.raw[name]
}

// message returns the message in a form that the SDK can decode.
func (m *repairer) message(b []byte) []byte {
	// Most messages need no repair, and are not decoded.
	tools := bytes.Contains(b, []byte(`"tools"`))
	structured := bytes.Contains(b, []byte(`"structuredContent"`))
	if !tools && !structured {
		if bytes.Contains(b, []byte(`"notifications/progress"`)) {
			m.progress(b)
		}
		return b
	}

	var env map[string]json.RawMessage
	var result map[string]json.RawMessage
	if json.Unmarshal(b, &env) != nil || json.Unmarshal(env["result"], &result) != nil || result == nil {
		return b
	}

	changed := false
	if list, ok := result["tools"]; ok {
		result["tools"] = m.list(list)
		changed = true
	}

	// The SDK decodes numbers as floats. The metadata carries the exact text past it.
	if exact, ok := result["structuredContent"]; ok && string(exact) != "null" {
		var meta map[string]any
		if json.Unmarshal(result["_meta"], &meta) != nil || meta == nil {
			meta = map[string]any{}
		}
		meta[structuredKey] = string(exact)
		result["_meta"], _ = json.Marshal(meta)
		changed = true
	}
	if !changed {
		return b
	}

	env["result"], _ = json.Marshal(result)
	out, err := json.Marshal(env)
	if err != nil {
		return b
	}
	return out
}

// list returns the tools that can be decoded, and stores all.
func (m *repairer) list(list json.RawMessage) json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(list, &all) != nil {
		return list
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.raw == nil {
		m.raw = map[string]json.RawMessage{}
	}
	good := make([]json.RawMessage, 0, len(all))
	here := map[string]bool{}
	for _, raw := range all {
		var t sdk.Tool
		if err := json.Unmarshal(raw, &t); err != nil || t.Name == "" {
			var name struct{ Name any }
			_ = json.Unmarshal(raw, &name)
			text, _ := name.Name.(string)
			m.bad = append(m.bad, Listed{Definition: Definition{Name: clip(text, 128)}, Verdict: Quarantined, Why: "its form is not part of the protocol"})
			continue
		}
		if !here[t.Name] { // of two with the same name, the model gets the first
			m.raw[t.Name], here[t.Name] = raw, true
		}
		good = append(good, raw)
	}
	out, err := json.Marshal(good)
	if err != nil {
		return list
	}
	return out
}

// lines reads a stream of messages, one per line, and returns each in a form that the SDK can
// decode. Lines that are not messages (a greeting, a log) are left out. Data of server-sent events
// is a line with a prefix.
type lines struct {
	r     *bufio.Reader
	close io.Closer
	m     *repairer
	sse   bool
	rest  []byte
	err   error
}

func (m *repairer) lines(r io.ReadCloser, sse bool) *lines {
	return &lines{r: bufio.NewReaderSize(r, 64<<10), close: r, m: m, sse: sse}
}

// Close closes the underlying stream.
func (l *lines) Close() error { return l.close.Close() }

// Read returns the next bytes of the repaired stream.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		if l.err != nil {
			return 0, l.err
		}
		var line []byte
		line, l.err = l.line()
		l.rest = l.repaired(line)
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lines) repaired(line []byte) []byte {
	body := bytes.TrimSpace(line)
	if l.sse {
		if data, ok := bytes.CutPrefix(body, []byte("data:")); ok {
			data = bytes.TrimSpace(data)
			if out := l.m.message(data); len(out) != len(data) || !bytes.Equal(out, data) {
				return append(append([]byte("data: "), out...), '\n')
			}
		}
		return line
	}

	// A program may log to its standard output. A line that is not a message is skipped.
	isMessage := len(body) > 0 && (body[0] == '{' || body[0] == '[')
	if !isMessage || !json.Valid(body) {
		return nil
	}
	return append(append([]byte(nil), l.m.message(body)...), '\n')
}

// line reads one line of limited length.
func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.r.ReadSlice('\n')
		if len(line) == 0 && err == nil {
			return append([]byte(nil), part...), nil
		}
		if len(line)+len(part) > maxMessage {
			return nil, errTooLong
		}
		line = append(line, part...)
		if err != bufio.ErrBufferFull {
			return line, err
		}
	}
}
