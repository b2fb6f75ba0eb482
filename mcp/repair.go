package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/mcp/internal/wire"
)

// maxMessage is the maximum size of a server's message.
const maxMessage = 8 << 20

// repairer processes the messages of a server before the SDK does. The SDK ends the connection at a
// message of another form, decodes a list of tools as one value, so that one malformed tool would
// lose them all, and drops the original bytes. It is safe for concurrent use.
type repairer struct {
	requests wire.Requests

	mu    sync.Mutex
	tools map[string]Listed // tools of the last list, by name
	bad   []Listed          // tools that cannot be decoded
	on    map[string]int    // progress notifications received, by token

	announced bool // a change of the tools was delivered after the last request for their list
}

var errRepeated = errors.New("a change was announced, and the list was not requested since then")

// sent records a message to the server.
func (m *repairer) sent(message []byte) {
	m.requests.Sent(message)
	if bytes.Contains(message, []byte(`"tools/list"`)) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.announced = false
	}
}

// repeats reports whether a message announces a change of the tools that was announced already. A
// server may do that without end, and the SDK is slow at it.
func (m *repairer) repeats(b []byte) bool {
	const change = "notifications/tools/list_changed"
	if len(b) > 1000 || !bytes.Contains(b, []byte(change)) || wire.HeadOf(b).Method != change {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.announced
	m.announced = true
	return before
}

// reader returns how messages are read. from says where they come from.
func (m *repairer) reader(from wire.Source) wire.Reader {
	return wire.Reader{
		Most: maxMessage,
		Repair: func(b []byte) ([]byte, error) {
			if m.repeats(b) {
				return nil, errRepeated
			}
			out, err := m.requests.Repair(b, from)
			if err != nil {
				return nil, err
			}
			return m.message(out), nil
		},
		Bad: func(_ int, text string) []byte {
			if text != wire.TooLong {
				return nil
			}
			id := from.For
			if id == nil {
				id = m.requests.Only()
			}
			if id == nil {
				return nil
			}
			m.requests.Done(id)
			return wire.Error(id, wire.CodeUnread, "its reply has more than 8 MiB")
		},
	}
}

// recorded is a writer of messages to a server.
type recorded struct {
	io.WriteCloser
	sent func(message []byte)
}

// Write writes one message.
func (r *recorded) Write(message []byte) (int, error) {
	r.sent(message)
	return r.WriteCloser.Write(message)
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

// tool returns a tool of the last list.
func (m *repairer) tool(name string) (Listed, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l, ok := m.tools[name]
	return l, ok
}

// marks are the members of results that are repaired. A message without them is not decoded.
var marks = [][]byte{
	[]byte(`"tools"`), []byte(`"_meta"`), []byte(`"capabilities"`), []byte(`"nextCursor"`),
	[]byte(`"content`), []byte(`"structuredContent"`), []byte(`"isError"`), []byte(`"messages"`),
}

// message returns the message in a form that the SDK can decode.
func (m *repairer) message(b []byte) []byte {
	if bytes.Contains(b, []byte(`"notifications/progress"`)) {
		m.progress(b)
	}

	// Most messages have nothing to repair, and are not decoded.
	if !slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(b, mark) }) {
		return b
	}
	var env map[string]json.RawMessage
	var result map[string]json.RawMessage
	if json.Unmarshal(b, &env) != nil || json.Unmarshal(env["result"], &result) != nil || result == nil {
		return b
	}

	was := maps.Clone(result)
	if list, ok := result["tools"]; ok {
		result["tools"] = m.list(list)
	}
	plainMembers(result)

	carry(result)
	if maps.EqualFunc(was, result, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) }) {
		return b
	}

	env["result"], _ = json.Marshal(result)
	out, err := json.Marshal(env)
	if err != nil {
		return b
	}
	return out
}

// plainMembers removes the members of a result that have another type than the protocol's, and
// converts what programs write in another form: [] for {}, and a number for a text.
func plainMembers(result map[string]json.RawMessage) {
	if meta, ok := result["_meta"]; ok && meta[0] != '{' {
		delete(result, "_meta")
	}
	if cursor, ok := result["nextCursor"]; ok && cursor[0] != '"' {
		delete(result, "nextCursor")
		var n json.Number
		if json.Unmarshal(cursor, &n) == nil && n != "" {
			result["nextCursor"] = asJSON(n.String())
		}
	}

	if caps, ok := result["capabilities"]; ok {
		var all map[string]any
		if json.Unmarshal(caps, &all) != nil {
			all = map[string]any{}
		}
		for name, v := range all {
			if list, ok := v.([]any); ok && len(list) == 0 {
				all[name] = map[string]any{}
			}
		}
		result["capabilities"] = asJSON(all)
	}
}

// list returns the tools that can be decoded, reduced to what the SDK uses, and stores all.
func (m *repairer) list(list json.RawMessage) json.RawMessage {
	var all []json.RawMessage
	if json.Unmarshal(list, &all) != nil {
		return list // the SDK's error names it
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tools == nil {
		m.tools = map[string]Listed{}
	}

	type reduced struct {
		Name  string          `json:"name"`
		Input json.RawMessage `json:"inputSchema,omitempty"`
	}
	good := make([]reduced, 0, len(all))
	here := map[string]bool{}
	for _, raw := range all {
		l, ok := decode(raw)
		if !ok {
			m.bad = append(m.bad, l)
			continue
		}
		if !here[l.Name] { // of two with the same name, the model gets the first
			here[l.Name] = true
			m.tools[l.Name] = l
		}
		good = append(good, reduced{l.Name, l.Input})
	}
	out, err := json.Marshal(good)
	if err != nil {
		return list
	}
	return out
}
