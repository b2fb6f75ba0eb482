package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Source says where a message was read.
type Source struct {
	// For is the request whose HTTP response contains the message. Nil means none. A reply without
	// an ID belongs to it.
	For json.RawMessage
	// Sole means that the response contains nothing else. Every reply belongs to For, with any ID.
	Sole bool
}

// Repair returns a message of the other side in a form that the SDK accepts. The error says why it
// is not delivered.
func (q *Requests) Repair(b []byte, from Source) ([]byte, error) {
	var m map[string]json.RawMessage
	if json.Unmarshal(b, &m) != nil || m == nil {
		return nil, errInvalid
	}

	// A log in JSON may have a method and an ID as well, and has no version.
	if _, ok := m["jsonrpc"]; !ok {
		return nil, errInvalid
	}
	was := maps.Clone(m)
	m["jsonrpc"] = json.RawMessage(`"2.0"`)

	var err error
	if method, ok := m["method"]; ok && !isNull(method) {
		err = repairRequest(m)
	} else {
		delete(m, "method")
		err = q.repairReply(m, from)
	}
	if err != nil {
		return nil, err
	}

	same := func(x, y json.RawMessage) bool { return string(x) == string(y) }
	if maps.EqualFunc(was, m, same) {
		return b, nil
	}
	return json.Marshal(m)
}

// repairRequest repairs a request or a notification.
func repairRequest(m map[string]json.RawMessage) error {
	if kind(m["method"]) != '"' {
		return errInvalid
	}
	m["params"] = repairParams(m["params"])
	if m["params"] == nil {
		delete(m, "params")
	}

	switch kind(m["id"]) {
	case 'n', 0:
		delete(m, "id")
	case '"', '0':
	default:
		return errInvalid
	}
	return nil
}

// objects are the parameters that are objects. Programs in PHP write one without members as [].
var objects = []string{"_meta", "arguments", "capabilities", "clientInfo"}

// repairParams returns the parameters of a request. Nil means that there are none.
func repairParams(raw json.RawMessage) json.RawMessage {
	if isNull(raw) || isEmptyList(raw) {
		return nil
	}
	var params map[string]json.RawMessage
	if json.Unmarshal(raw, &params) != nil {
		return raw
	}

	repaired := false
	for _, name := range objects {
		if isEmptyList(params[name]) {
			params[name] = json.RawMessage("{}")
			repaired = true
		}
	}
	if !repaired {
		return raw
	}
	out, _ := json.Marshal(params) // it was decoded from JSON
	return out
}

// isEmptyList reports whether raw is [].
func isEmptyList(raw json.RawMessage) bool {
	return kind(raw) == '[' && len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
}

// repairReply repairs a reply, and ends the wait for it.
func (q *Requests) repairReply(m map[string]json.RawMessage, from Source) error {
	_, hasResult := m["result"]
	if isNull(m["error"]) {
		delete(m, "error")
	}
	_, failed := m["error"]
	if !hasResult && !failed && kind(m["id"]) == 0 {
		return errInvalid
	}

	id := q.waiting(m["id"]).ID
	switch {
	case id != nil:
	// The response to a request over HTTP has its reply, with any id.
	case from.Sole:
		id = from.For
	case isNull(m["id"]) && failed && from.For != nil:
		id = from.For
	// An error without an id belongs to the only request that waits.
	case isNull(m["id"]) && failed:
		id = q.Only()
	}
	if id == nil {
		return errUnasked
	}
	method := q.waiting(id).Method
	q.Done(id)
	m["id"] = id

	switch {
	case failed:
		delete(m, "result")
		m["error"] = repairError(m["error"])
	case !hasResult:
		m["error"] = repairError(json.RawMessage(`"the reply has neither a result nor an error"`))
	case method == "tools/call":
		m["result"] = repairResult(m["result"])
	}
	return nil
}

// resultMembers are the members of the result of a call in the protocol, besides its content.
var resultMembers = []string{"_meta", "isError", "resultType"}

// otherResults are the members of a result of a call whose content has another place, or comes
// later.
var otherResults = []string{"content", "structuredContent", "task", "inputRequests", "requestState"}

// repairResult returns the result of a call with content. Programs that are written by hand return
// a value of their own in its place. Their object is the structured content, and any other value is
// the content.
func repairResult(raw json.RawMessage) json.RawMessage {
	if kind(raw) != '{' {
		// raw was decoded from JSON, so that this cannot fail.
		out, _ := json.Marshal(map[string]json.RawMessage{"content": raw})
		return out
	}
	var result map[string]json.RawMessage
	if json.Unmarshal(raw, &result) != nil {
		return raw
	}

	own := map[string]json.RawMessage{}
	for name, value := range result {
		switch {
		case slices.Contains(otherResults, name):
			return raw
		case !slices.Contains(resultMembers, name):
			own[name] = value
			delete(result, name)
		}
	}
	if len(own) == 0 {
		return raw
	}
	result["structuredContent"], _ = json.Marshal(own)
	out, _ := json.Marshal(result)
	return out
}

// repairError returns an error object with a code and a text.
func repairError(raw json.RawMessage) json.RawMessage {
	var e struct {
		Code    any             `json:"code"`
		Message any             `json:"message"`
		Data    json.RawMessage `json:"data,omitempty"`
	}
	if json.Unmarshal(raw, &e) != nil {
		e.Message = nil
	}

	text, isText := e.Message.(string)
	if !isText {
		text = strings.Trim(string(raw), `"`)
	}
	code, isNumber := e.Code.(float64)

	// These codes say what is known of a call, and a server must not choose them.
	own := code >= CodeUnread && code <= CodeExpired
	if !isNumber || code != float64(int32(code)) || own {
		code = codeInternal
	}
	e.Code = int(code)
	e.Message = text
	out, _ := json.Marshal(e) // Data was decoded from JSON
	return out
}

// kind returns the kind of a JSON value: its first byte, '0' for numbers, 0 for none.
func kind(b json.RawMessage) byte {
	switch {
	case len(b) == 0:
		return 0
	case b[0] == '-' || b[0] >= '0' && b[0] <= '9':
		return '0'
	}
	return b[0]
}

// isNull reports whether a member is missing or null.
func isNull(b json.RawMessage) bool { return kind(b) == 0 || kind(b) == 'n' }
