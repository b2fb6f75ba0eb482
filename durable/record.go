package durable

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/text"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// The kinds of records, with their keys.
const (
	kindBegin = "begin" // begin: the input of the run
	// KEY/tools: the tools of the run with that key. KEY/tools/N: the tools that its request N adds
	// (Tool.Deferred).
	kindTools = "tools"
	kindReply = "reply" // KEY of the request: the model's reply
	// KEY of the request/background/N: the reply that the provider computes in the background
	kindBackground = "background"
	kindIntent     = "intent"   // KEY/intent/N: the call at KEY is about to start attempt N
	kindOutcome    = "outcome"  // KEY: the outcome of the call
	kindQuestion   = "question" // KEY/question/N: the pending question of the call
	// KEY/question/N/decision: the answer; after it KEY/question/N/decision/M, if the answer before
	// expired
	kindDecision = "decision"
	kindSteer    = "steer"    // KEY of the request/steer: the messages that it received
	kindMessage  = "message"  // message/ID: sent from outside, not received yet
	kindCancel   = "cancel"   // cancel: the run is to be cancelled
	kindAccept   = "accept"   // accept/FENCE: accepted changes of tools
	kindTrace    = "trace"    // trace/FENCE: the position of the attempt in a trace
	kindRestored = "restored" // restored/ID: the database was restored from a backup
	kindEnd      = "end"      // end/FENCE: the reason of a stop, temporary or final
)

type beginBody struct {
	State    int             `json:"state"`
	Agent    string          `json:"agent,omitzero"`
	Messages json.RawMessage `json:"messages"`
	// The Result that the run resumes from; nil means none.
	From json.RawMessage `json:"from,omitzero"`
	// Answered means that the open calls of Messages get error results. Journals of earlier
	// versions do not have it: their runs executed these calls.
	Answered bool            `json:"answered,omitzero"`
	Meta     json.RawMessage `json:"meta,omitzero"`

	ForkedFrom *Origin `json:"forked_from,omitzero"` // nil means no fork
	// Marked is the field of toolsBody for the copied part of a fork.
	Marked map[string]json.RawMessage `json:"marked,omitzero"`
}

type replyBody struct {
	Messages string       `json:"messages"` // digest of the sent conversation
	Request  string       `json:"request"`  // digest of the rest, without the tools
	Response llm.Response `json:"response"`
	// Bytes of parts that their JSON form does not preserve.
	Exact  map[int][]byte `json:"exact,omitzero"`
	Opaque map[int][]byte `json:"opaque,omitzero"`
	// Nil if the model sends nothing, or not through Transport.
	Sent *sentBody `json:"sent,omitzero"`
}

// backgroundBody identifies a reply that the provider computes.
type backgroundBody struct {
	Messages   string     `json:"messages"` // as in replyBody
	Request    string     `json:"request"`  // as in replyBody
	Background llm.Opaque `json:"background"`
	N          int        `json:"n"`             // from 1; the last one counts
	Sent       *sentBody  `json:"sent,omitzero"` // as in replyBody
}

type intentBody struct {
	Asked    llm.ToolCall  `json:"asked"` // as made by the model, or by the call around it
	Call     llm.ToolCall  `json:"call"`
	Effect   pawl.Effect   `json:"effect"`
	Tool     string        `json:"tool"` // digest
	Key      string        `json:"idempotency_key"`
	Decision *llm.Decision `json:"decision,omitzero"`
}

type outcomeBody struct {
	Call      llm.ToolCall   `json:"call"` // as made by the model
	Execution pawl.Execution `json:"execution"`
}

type messagesBody struct {
	Messages []llm.Message `json:"messages"`
	From     []string      `json:"from,omitzero"` // keys of the received messages from outside
}

type acceptBody struct {
	Run   string   `json:"run"`
	Names []string `json:"names"`
	// toolsBody has all current tools. A new Agent means that the earlier requests are not compared
	// any more.
	toolsBody
}

type traceBody struct {
	Traceparent string `json:"traceparent"` // in the form of the W3C
}

type endBody struct {
	Stop    pawl.StopReason    `json:"stop"`
	Limit   pawl.LimitName     `json:"limit,omitzero"`
	Cause   string             `json:"cause,omitzero"`
	Error   string             `json:"error,omitzero"`
	Spent   pawl.Spent         `json:"spent"`
	Pending []pawl.PendingCall `json:"pending,omitzero"`
	Values  pawl.Values        `json:"values,omitzero"`
	Output  json.RawMessage    `json:"output,omitzero"`
	// Failed has the requests without a stored reply of this attempt, by Request.Key.
	Failed map[llm.Key]failure `json:"failed,omitzero"`
}

// keepReply returns the stored form of a reply.
func keepReply(resp *llm.Response) (replyBody, error) {
	body := replyBody{Response: *resp}
	form, err := json.Marshal(resp)
	if err != nil {
		return body, err
	}
	var back llm.Response
	if err := json.Unmarshal(form, &back); err != nil {
		return body, err
	}
	for i, p := range resp.Message.Parts {
		text, opaque := bytesOf(p)
		again, opaqueAgain := bytesOf(back.Message.Parts[i])
		if !bytes.Equal(text, again) {
			put(&body.Exact, i, text)
		}
		if !bytes.Equal(opaque, opaqueAgain) {
			put(&body.Opaque, i, opaque)
		}
	}
	return body, nil
}

func put(m *map[int][]byte, i int, b []byte) {
	if *m == nil {
		*m = map[int][]byte{}
	}
	(*m)[i] = b
}

// reply returns the stored reply, byte for byte.
func (b *replyBody) reply() *llm.Response {
	resp := b.Response
	for i, p := range resp.Message.Parts {
		text, exact := b.Exact[i]
		opaque, odd := b.Opaque[i]
		if !exact && !odd {
			continue
		}
		if !exact {
			text, _ = bytesOf(p)
		}
		resp.Message.Parts[i] = withBytes(p, text, opaque)
	}
	return &resp
}

func bytesOf(p llm.Part) (text, opaque []byte) {
	var o *llm.Opaque
	switch p := p.(type) {
	case llm.Text:
		text = []byte(p.Text)
		o = p.Opaque
	case llm.Reasoning:
		text = []byte(p.Text)
		o = p.Opaque
	case llm.ToolCall:
		text = p.Args
		o = p.Opaque
	}
	if o != nil {
		opaque = o.Data
	}
	return text, opaque
}

func withBytes(p llm.Part, text, opaque []byte) llm.Part {
	give := func(o *llm.Opaque) *llm.Opaque {
		if o == nil || opaque == nil {
			return o
		}
		return &llm.Opaque{Provider: o.Provider, Data: opaque}
	}
	switch p := p.(type) {
	case llm.Text:
		p.Text, p.Opaque = string(text), give(p.Opaque)
		return p
	case llm.Reasoning:
		p.Text, p.Opaque = string(text), give(p.Opaque)
		return p
	case llm.ToolCall:
		p.Args, p.Opaque = text, give(p.Opaque)
		return p
	}
	return p
}

// plain converts x to the form that the journal returns, so that the run continues with the same
// bytes before and after a crash.
func plain(x *pawl.Execution) error {
	b, err := json.Marshal(x.Result)
	if err != nil {
		return err
	}
	x.Result = llm.ToolResult{}
	return json.Unmarshal(b, &x.Result)
}

// taskOf returns the start of the user's text, for lists.
func taskOf(msgs []llm.Message) string {
	for i := len(msgs) - 1; i >= 0; i-- {
		if msgs[i].Role == llm.RoleUser {
			said := strings.ToValidUTF8(strings.Join(strings.Fields(msgs[i].Text()), " "), "")
			if len(said) > 120 {
				said = text.Clip(said, 117)
			}
			return said
		}
	}
	return ""
}

// history is the records of a run, by subject.
type history struct {
	records []store.Record
	begin   *beginBody
	tools   map[string]toolsBody
	replies map[llm.Key]*replyBody
	replied map[llm.Key]time.Time
	// the last reply that the provider computes, by the key of the request
	background map[llm.Key]*backgroundBody
	outcomes   map[llm.Key]*outcomeBody
	intents    map[llm.Key][]intent
	asked      map[llm.Key][]question
	steers     map[llm.Key]*messagesBody
	failed     map[llm.Key]failure // of all attempts
	messages   []message
	taken      map[string]bool
	end        *endBody
	cancel     bool
	restored   int64  // the Seq of the last restore from a backup; 0 means none
	trace      string // of the last attempt that has one
	head       string
	spent      []span // by lease
}

type intent struct {
	seq int64
	intentBody
}

type question struct {
	seq     int64
	key     string // of the record
	waiting pawl.PendingCall
	answer  *llm.Decision // the last one; nil means none that counts
	answers int           // the number of answers, also of expired ones
}

type message struct {
	key  string
	body messagesBody
}

type span struct{ fence, elapsed int64 }

// read builds the history of a run, and checks its chain.
func read(run string, records []store.Record) (*history, error) {
	h := &history{tools: map[string]toolsBody{}, replies: map[llm.Key]*replyBody{},
		replied: map[llm.Key]time.Time{}, outcomes: map[llm.Key]*outcomeBody{},
		background: map[llm.Key]*backgroundBody{}, failed: map[llm.Key]failure{}, intents: map[llm.Key][]intent{},
		asked: map[llm.Key][]question{}, steers: map[llm.Key]*messagesBody{}, taken: map[string]bool{}}
	for _, r := range records {
		if err := h.add(run, r); err != nil {
			return nil, err
		}
	}
	if h.begin == nil {
		return nil, fmt.Errorf("run %s: %w: it has no beginning", run, ErrCorrupt)
	}
	return h, nil
}

// add adds one record.
func (h *history) add(run string, r store.Record) error {
	bad := func(err error) error {
		return fmt.Errorf("run %s: %w: record %d (%s): %v", run, ErrCorrupt, r.Seq, r.Key, err)
	}
	switch {
	case r.Seq != int64(len(h.records))+1:
		return bad(fmt.Errorf("%d was next", len(h.records)+1))
	case r.Hash != r.Chain(run, h.head):
		return bad(fmt.Errorf("it is not what was written, or one before it is not"))
	}
	if err := h.take(r); err != nil {
		return bad(err)
	}
	h.records, h.head = append(h.records, r), r.Hash
	if r.Fence > 0 {
		if n := len(h.spent); n > 0 && h.spent[n-1].fence == r.Fence {
			h.spent[n-1].elapsed = max(h.spent[n-1].elapsed, int64(r.Elapsed))
		} else {
			h.spent = append(h.spent, span{r.Fence, int64(r.Elapsed)})
		}
	}
	return nil
}

func (h *history) take(r store.Record) (err error) {
	call := llm.Key(r.Key)
	if i := strings.LastIndex(r.Key, "/"+r.Kind+"/"); i >= 0 {
		call = llm.Key(r.Key[:i])
	}
	switch r.Kind {
	case kindBegin:
		h.begin = new(beginBody)
		if err = json.Unmarshal(r.Body, h.begin); err == nil && h.begin.State != stateVersion {
			err = fmt.Errorf("the journal has the form %d, this program knows %d", h.begin.State, stateVersion)
		}
	case kindTools:
		var b toolsBody
		err = json.Unmarshal(r.Body, &b)
		run, first := strings.CutSuffix(r.Key, "/tools")
		if !first {
			run = strings.TrimSuffix(r.Key[:strings.LastIndex(r.Key, "/")], "/tools")
			b = h.tools[run].with(b)
		}
		h.tools[run] = b
	case kindReply:
		h.replies[call] = new(replyBody)
		h.replied[call] = r.At
		err = json.Unmarshal(r.Body, h.replies[call])
	case kindBackground:
		h.background[call] = new(backgroundBody)
		err = json.Unmarshal(r.Body, h.background[call])
	case kindOutcome:
		h.outcomes[call] = new(outcomeBody)
		err = json.Unmarshal(r.Body, h.outcomes[call])
	case kindIntent:
		n := intent{seq: r.Seq}
		err = json.Unmarshal(r.Body, &n.intentBody)
		h.intents[call] = append(h.intents[call], n)
	case kindQuestion:
		q := question{seq: r.Seq, key: r.Key}
		err = json.Unmarshal(r.Body, &q.waiting)
		h.asked[call] = append(h.asked[call], q)
	case kindDecision:
		err = h.decided(r)
	case kindSteer:
		b := new(messagesBody)
		err = json.Unmarshal(r.Body, b)
		h.steers[llm.Key(strings.TrimSuffix(r.Key, "/steer"))] = b
		for _, k := range b.From {
			h.taken[k] = true
		}
	case kindMessage:
		m := message{key: r.Key}
		err = json.Unmarshal(r.Body, &m.body)
		h.messages = append(h.messages, m)
	case kindAccept:
		var b acceptBody
		err = json.Unmarshal(r.Body, &b)
		h.accept(b)
	case kindCancel:
		h.cancel = true
	case kindRestored:
		h.restored = r.Seq
	case kindTrace:
		var b traceBody
		err = json.Unmarshal(r.Body, &b)
		h.trace = b.Traceparent
	case kindEnd:
		h.end = new(endBody)
		err = json.Unmarshal(r.Body, h.end)
		for key, f := range h.end.Failed {
			h.failed[key] = h.failed[key].with(f)
		}
	default:
		err = fmt.Errorf("its kind %q is not known", r.Kind)
	}
	return err
}

// open returns the pending question of the call at key. Nil means that its last attempt has asked
// none.
func (h *history) open(key llm.Key) *question {
	asked, started := h.asked[key], h.intents[key]
	if len(asked) == 0 || h.outcomes[key] != nil {
		return nil
	}
	q := &asked[len(asked)-1]
	if len(started) > 0 && started[len(started)-1].seq > q.seq {
		return nil // it was answered, and the call started
	}
	return q
}

// waiting returns the open questions in the order of the calls.
func (h *history) waiting() []question {
	var out []question
	for _, r := range h.records {
		if r.Kind != kindQuestion {
			continue
		}
		key := llm.Key(r.Key[:strings.LastIndex(r.Key, "/question/")])
		if q := h.open(key); q != nil && q.key == r.Key {
			out = append(out, *q)
		}
	}
	return out
}

// steps returns the number of replies of the run, without nested runs, and the number of the first
// reply. first is not 0 if the run started with replies.
func (h *history) steps() (first, n int) {
	first = -1
	for key := range h.replies {
		if at, ok := stepOf(string(key)); ok && strings.Count(string(key), "/") == 2 {
			n++
			if first < 0 || at < first {
				first = at
			}
		}
	}
	return max(first, 0), n
}

// stepOf returns the number of the step of key.
func stepOf(key string) (int, bool) {
	parts := strings.SplitN(key, "/", 3)
	if len(parts) < 3 || parts[0] != "run" {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}

func numbered(key llm.Key, kind string, n int) string {
	return string(key) + "/" + kind + "/" + strconv.Itoa(n)
}
