package assemble

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
)

// LoadTranscript reads a file that --save wrote, or a list of messages, and returns the result to
// resume from.
func LoadTranscript(path string) (*pawl.Result, error) {
	if path == "" {
		return new(pawl.Result), nil
	}
	b, err := cli.ReadFile("--messages", path)
	if err != nil {
		return nil, err
	}
	const hint = `a file of --save, or a list like [{"role":"user","parts":[{"type":"text","text":"…"}]}]`
	from := new(pawl.Result)
	trimmed := bytes.TrimSpace(b)
	switch {
	case len(trimmed) == 0:
		return nil, cli.Usage(hint, "--messages %s: the file is empty", path)
	case trimmed[0] == '[':
		err = cli.Decode(b, &from.Messages)
	case trimmed[0] == '{' && cli.Repeated(b) != "":
		err = fmt.Errorf("%q is a duplicate", cli.Repeated(b))
	case string(trimmed) == "null":
		err = errors.New("got null, want an object or a list")
	default:
		err = cli.Decode(b, from)
	}
	if err != nil {
		text := cli.JSONFault(b, err)
		if strings.HasPrefix(text, "[") {
			text = "messages" + text
		}
		return nil, cli.Usage(hint, "--messages %s: %s", path, text)
	}
	for i := range from.Messages { // the file is indented; the model gets compact arguments
		for j, p := range from.Messages[i].Parts {
			if c, ok := p.(llm.ToolCall); ok {
				c.Args = compact(c.Args)
				from.Messages[i].Parts[j] = c
			}
		}
	}
	return from, nil
}

// compact returns JSON without white space. Text that is not JSON stays unchanged.
func compact(b json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, b) != nil {
		return b
	}
	return out.Bytes()
}

// SaveTranscript writes res to path atomically. An empty path means no file.
func SaveTranscript(path string, res *pawl.Result) error {
	if path == "" {
		return nil
	}
	b, err := json.Marshal(res)
	if err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, b, "", "  "); err != nil {
		return fmt.Errorf("save %s: %w", path, err)
	}
	out.WriteByte('\n')
	return cli.WriteFile(path, out.Bytes())
}

// OpenCall is a call without a result, with the key by which a person names it.
type OpenCall struct {
	Key  llm.Key         `json:"key"`
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Why  string          `json:"why,omitempty"`

	// the digest of the pending call; a decision is bound to it
	Digest string `json:"digest,omitempty"`
	// unknown means that the call was interrupted and may have happened; "" means that it was not
	// started
	Outcome pawl.Outcome `json:"outcome,omitempty"`

	waiting  *pawl.PendingCall // nil means that the call was handed back to the caller
	answered bool              // an answer is stored
}

// Question returns the pending question of the call. nil means that the call was handed back to the
// caller, and there is no question.
func (o *OpenCall) Question() *pawl.PendingCall { return o.waiting }

// WaitingCalls returns pending calls as open calls, including nested calls.
func WaitingCalls(ws []pawl.PendingCall) []OpenCall {
	open := make([]OpenCall, len(ws))
	for i := range ws {
		w := &ws[i]
		open[i] = newOpenCall(w.Key, w.Call)
		open[i].ask(w)
	}
	return open
}

// newOpenCall returns a call. Arguments that are not JSON become a JSON string.
func newOpenCall(key llm.Key, c llm.ToolCall) OpenCall {
	if !json.Valid(c.Args) {
		c.Args, _ = json.Marshal(string(c.Args))
	}
	return OpenCall{Key: key, ID: c.ID, Name: c.Name, Args: c.Args}
}

// ask stores the pending question of the call.
func (o *OpenCall) ask(w *pawl.PendingCall) {
	o.Key, o.Why, o.Digest, o.waiting = w.Key, w.Why, w.Digest, w
	if w.Outcome == pawl.OutcomeUnknown {
		o.Outcome = w.Outcome
	}
}

// OpenCalls returns the calls of res that have no result, in call order.
func OpenCalls(res *pawl.Result) []OpenCall {
	replies, last := 0, llm.Message{}
	for _, m := range res.Messages {
		if m.Role == llm.RoleAssistant {
			replies++
			last = m
		}
	}
	var open []OpenCall
	for _, c := range res.Calls() {
		for place, d := range last.Calls() {
			if c.ID != d.ID {
				continue
			}
			o := newOpenCall(llm.Key(fmt.Sprintf("run/%d/%d", replies, place)), c)
			for i, w := range res.Pending {
				if w.Call.ID == c.ID {
					o.ask(&res.Pending[i])
				}
			}
			open = append(open, o)
		}
	}
	return open
}
