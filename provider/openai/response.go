package openai

import (
	"cmp"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

var responsesAPI = &api{
	id:       "openai",
	path:     "responses",
	maxID:    64,
	rules:    &wire.Rules{HistoryRules: llm.HistoryRules{Settled: true}, Heads: []string{"previous_response_id", "conversation"}},
	results:  &responsesMedia,
	encode:   fromRequest,
	fromTool: fromTool,
	decoder:  func(d *dialect, out *wire.Emitter) wire.Decoder { return &responseDecoder{dialect: d, Emitter: out} },
}

// responseDecoder emits the deltas of a Responses reply: of the items of a whole one (this file),
// or of the events of a stream (stream.go).
type responseDecoder struct {
	*dialect
	*wire.Emitter
	slots []slot        // the items of a stream, in order of appearance
	at    map[int64]int // the position in slots of the last item with an index
	begun bool          // an event before the last one arrived
	ended bool          // the last event arrived
	// partial means that a call says that it is not complete, so that the reply is cut.
	partial bool

	number   int64  // of the last event
	numbered bool   // an event had a number
	counts   bool   // numbers have grown, so they are meaningful
	gap      bool   // a number is missing
	skipped  int64  // events since then whose number was not read
	whole    []byte // a buffer
}

// item is one output item. Its members are raw JSON until its type is known.
type item struct {
	raw                                         []byte
	typ, status                                 jsonscan.Word
	callID, name, phase                         string
	args, input, action, operation, environment []byte
	content, summary, namespace, caller         []byte
	// output_index, if the item has it; otherwise noIndex
	index int64
}

// read reads one item.
func (d *responseDecoder) read(c *jsonscan.Cursor) item {
	it := item{index: noIndex}
	from := c.Offset()
	var name []byte
	c.Fields("type", &it.typ, "call_id", &it.callID, "name", &name, "phase", &it.phase, "arguments", &it.args,
		"input", &it.input, "action", &it.action, "operation", &it.operation, "environment", &it.environment,
		"content", &it.content, "summary", &it.summary, "namespace", &it.namespace, "caller", &it.caller,
		"output_index", &it.index, "status", &it.status)
	it.name = d.Name(name)
	it.raw = c.Since(from)
	return it
}

// kind is how an item becomes parts of the reply.
type kind int

const (
	kindOpaque    kind = iota // the server's own: stored and sent back
	kindMessage               // text
	kindReasoning             // reasoning
	kindFunction              // a call
	kindCustom                // a call with free text
	kindHosted                // a call of a tool that the API defines and the program executes
)

func (it *item) kind() kind {
	switch string(it.typ) {
	case "message":
		return kindMessage
	case "reasoning":
		return kindReasoning
	case "function_call":
		return kindFunction
	case customType:
		if strings.HasPrefix(it.callID, "xs_") {
			return kindOpaque // xAI's own searches, already executed
		}
		return kindCustom
	case "local_shell_call", "apply_patch_call":
		return kindHosted
	case "shell_call":
		if strings.HasPrefix(wire.MemberText(it.environment, "type"), "container") {
			return kindOpaque // executed in the server's own container
		}
		return kindHosted
	}
	return kindOpaque
}

func (d *responseDecoder) Whole(body []byte) error {
	c := jsonscan.New(body)
	if c.Kind() != jsonscan.Object {
		return d.broken("the reply is not a JSON object: %s", wire.Excerpt(body))
	}
	d.Emitter.Whole = true
	return d.response(&c, "", true)
}

func (d *responseDecoder) Over() bool { return d.ended }

// Stated reports whether the last event arrived, which has the status.
func (d *responseDecoder) Stated() bool { return d.ended }

func (d *responseDecoder) End() error {
	if !d.ended {
		return d.broken("the stream ended before the response was completed")
	}
	return nil
}

// response reads a response object. items means that its output was not sent as events. typ is the
// type of the event that it ends a stream with; "" means that it is a whole reply.
func (d *responseDecoder) response(c *jsonscan.Cursor, typ string, items bool) error {
	var status, object string
	var output, usage, failure, incomplete, diagnostics []byte
	c.Fields("status", &status, "output", &output, "object", &object, "id", &d.ID, "model", &d.Model,
		"usage", &usage, "error", &failure, "incomplete_details", &incomplete,
		"prompt_cache_diagnostics", &diagnostics)
	if len(usage) > 0 && usage[0] == '{' {
		d.Usage = toUsage(usage)
	}
	switch {
	case c.Err() != nil:
		return d.broken("the reply cannot be read: %v", c.Err())
	case failure != nil && string(failure) != "null":
		return d.toStreamError(failure)
	case len(output) == 0 || output[0] != '[':
		if items || status == "failed" {
			return d.broken("the reply has no output; it is %q", object)
		}
	}

	// An event that says that the response is not complete counts, with any status.
	if event := endEvents[typ]; statuses[status] == wire.Answered && event != "" {
		status = event
	}
	ending, word, err := d.toFinish(status, wire.MemberText(incomplete, "reason"))
	if err != nil {
		return err
	}
	if items {
		if err := d.items(c, output); err != nil {
			return err
		}
	}
	d.ended = true
	// A stream of only its last event, without any content, is what a proxy sends that dropped the
	// rest.
	alone := typ != "" && !d.begun && d.Next == 0
	if alone && ending == wire.Answered {
		return wire.Nothing(d.provider)
	}
	if !items && ending == wire.Answered { // the calls of a cut reply do not run
		if err := d.compare(output); err != nil {
			return err
		}
	}
	// An item was incomplete, although the response is not. The calls of such a reply must not run.
	if d.partial && ending == wire.Answered {
		ending = wire.Cut
		word = "incomplete"
	}
	if err := d.NoteCacheMiss(wire.MemberText(diagnostics, "reason"), diagnostics); err != nil {
		return err
	}
	return d.FinishAs(wire.End{Word: word, Ending: ending})
}

// items emits the items of an output that was not sent as events.
func (d *responseDecoder) items(c *jsonscan.Cursor, output []byte) error {
	if err := c.End(); d.Emitter.Whole && err != nil {
		return d.broken("the reply cannot be read: %v", err)
	}
	list := jsonscan.New(output)
	for list.Array(); list.More(); {
		it := d.read(&list)
		if err := list.Err(); err != nil {
			return d.broken("an item of the reply cannot be read: %v", err)
		}
		if err := d.item(&it); err != nil {
			return err
		}
	}
	return nil
}

// statuses has a row for each status of a response. The API has no status for calls; Response.Add
// sees them. A compaction has no status.
var statuses = wire.Endings{
	"":            wire.Answered,
	"completed":   wire.Answered,
	"complete":    wire.Answered, // of other servers
	"incomplete":  wire.Cut,
	"failed":      wire.Unusable,
	"cancelled":   wire.Unusable,
	"queued":      wire.Paused,
	"in_progress": wire.Paused,
}

// incompleteReasons has a row for each reason of the status incomplete. Without a row, a response
// with this status is cut all the same.
var incompleteReasons = wire.Endings{
	"max_output_tokens": wire.Full,
	"max_tokens":        wire.Full, // of other servers
	"length":            wire.Full, // of other servers
	"content_filter":    wire.Filtered,
	"max_messages":      wire.Cut,
	"steered":           wire.Cut,
}

// endEvents are the events that end a stream, with the status of a response that states none.
var endEvents = map[string]string{
	"response.completed":  "completed",
	"response.incomplete": "incomplete",
	"response.failed":     "failed",
	"response.cancelled":  "cancelled",
	"response.done":       "completed", // of other servers
}

// toFinish returns what the status of a response means, and the word that says so. reason is the
// reason of the status incomplete.
func (d *responseDecoder) toFinish(status, reason string) (ending wire.Ending, word string, err error) {
	ending = statuses[status]
	word = status
	if _, isCut := incompleteReasons[reason]; isCut && ending == wire.Answered {
		ending = wire.Cut // the details say it
	}
	switch ending {
	// Incomplete without a reason is a truncated reply. The reason content_filter, however, is an
	// ending of its own.
	case wire.Cut:
		ending = incompleteReasons[reason]
		word = cmp.Or(reason, status)
		if reason == "" {
			ending = wire.Cut
		}
	case wire.Paused:
		return ending, word, &llm.ProviderError{Provider: d.provider, Code: llm.CodeUnsupported,
			Message: "the response is " + status + ": a Model fetches it later if it asked for it in the background"}
	case wire.Unusable:
		return ending, word, &llm.ProviderError{Provider: d.provider, Code: llm.CodeServer,
			Message: "the response has the status " + strconv.Quote(status)}
	}
	return ending, word, nil
}

// item emits a whole item: of a whole reply, or of a stream that sent no fragments of it.
func (d *responseDecoder) item(it *item) error {
	d.noteStatus(it)
	switch it.kind() {
	case kindMessage:
		return d.message(it)
	case kindReasoning:
		o, err := d.Keep(it.raw)
		if err != nil {
			return err
		}
		return d.Part(llm.Reasoning{Text: reasoningText(it), Opaque: o})
	// An item of the provider's own tools has no text. It is stored as reasoning, because it must
	// be sent back at its place.
	case kindOpaque:
		o, err := d.Keep(it.raw)
		if err != nil {
			return err
		}
		if err := emitImageNotice(d.Emitter, it.typ); err != nil {
			return err
		}
		return d.Part(llm.Reasoning{Opaque: o})
	}
	call, err := d.toCall(it)
	if err != nil {
		return err
	}
	if wrapped(d.Tools, call.Name) {
		return unwrap(d.Emitter, call)
	}
	return d.Part(call)
}

// noteStatus reads whether a call or a text is complete. A call that says in_progress is: OpenAI
// reports calls by programs so.
func (d *responseDecoder) noteStatus(it *item) {
	switch it.kind() {
	case kindMessage, kindFunction, kindCustom, kindHosted:
		d.partial = d.partial || string(it.status) == "incomplete"
	}
}

// toCall returns the call of an item. Members without a place in llm.ToolCall go into Opaque: for
// function calls, where the tool was found and who called it; for other calls, the item.
func (d *responseDecoder) toCall(it *item) (llm.ToolCall, error) {
	call := llm.ToolCall{ID: it.callID, Name: d.Tools.FromWire(it.name)}
	var err error
	switch it.kind() {
	case kindFunction:
		call.Args = wire.AsArgs(it.args)
		var b []byte
		if it.namespace != nil {
			b = wire.AppendMember(b, "namespace", it.namespace)
		}
		if it.caller != nil {
			b = wire.AppendMember(b, "caller", it.caller)
		}
		if b != nil {
			call.Opaque, err = d.Keep(append(b, '}'))
		}
		return call, err
	case kindCustom:
		call.Args = wire.AsArgs(it.input)
	// An item of the provider's own tools has no name. Its type stands for the name.
	default:
		call.Name = string(it.typ)
		args := it.action
		if args == nil {
			args = it.operation
		}
		call.Args = append(json.RawMessage(nil), args...)
	}
	call.Opaque, err = d.Keep(it.raw)
	return call, err
}

func (d *responseDecoder) message(it *item) error {
	opaque, err := d.phase(it)
	if err != nil {
		return err
	}
	c := jsonscan.New(it.content)
	for c.Array(); c.More(); {
		var text, refusal []byte
		c.Fields("text", &text, "refusal", &refusal)
		// A refusal is shown like a text. Refused makes it a finish reason of its own.
		if len(refusal) > 0 && refusal[0] == '"' {
			text = refusal
		}
		if !wire.Filled(text) {
			continue
		}
		d.Refused = d.Refused || len(refusal) > 0 && refusal[0] == '"'
		if err := d.Part(llm.Text{Text: wire.AsText(text), Opaque: opaque}); err != nil {
			return err
		}
	}
	return nil
}

// phase stores whether a message is commentary or the final answer, because models expect it back.
func (d *responseDecoder) phase(it *item) (*llm.Opaque, error) {
	if it.phase == "" {
		return nil, nil
	}
	return d.Keep(append(jsonscan.AppendString([]byte(`{"phase":`), it.phase), '}'))
}

// reasoningText returns the summary of a reasoning item, or the reasoning itself if the server
// shows it.
func reasoningText(it *item) string {
	for _, raw := range [...][]byte{it.summary, it.content} {
		if len(raw) <= 2 {
			continue
		}
		var texts []string
		c := jsonscan.New(raw)
		for c.Array(); c.More(); {
			if text := wire.Member(c.Raw(), "text"); text != nil {
				texts = append(texts, wire.AsText(text))
			}
		}
		if s := strings.Join(texts, "\n\n"); s != "" {
			return s
		}
	}
	return ""
}

// toUsage reads the figures of both APIs. Some servers (xAI, over Chat Completions) do not count
// reasoning as output; their total shows it.
func toUsage(raw []byte) *llm.Usage {
	c := jsonscan.New(raw)
	if c.Kind() != jsonscan.Object {
		return nil
	}
	u := new(llm.Usage)
	var total, hits int
	var in, out, lifetimes []byte
	c.Fields("input_tokens", &u.Input, "prompt_tokens", &u.Input, "output_tokens", &u.Output,
		"completion_tokens", &u.Output, "total_tokens", &total, "input_tokens_details", &in,
		"prompt_tokens_details", &in, "output_tokens_details", &out, "completion_tokens_details", &out,
		"prompt_cache_hit_tokens", &hits, // DeepSeek
		"cost", &u.Cost) // OpenRouter, in dollars
	if c.Err() != nil {
		return nil
	}
	c = jsonscan.New(in)
	c.Fields("cached_tokens", &u.CacheRead, "cache_write_tokens", &u.CacheWrite, "cache_creation_tokens", &u.CacheWrite,
		"cache_write_tokens_details", &lifetimes)
	c = jsonscan.New(lifetimes)
	c.Fields("ttl_12h_tokens", &u.CacheWriteLong)
	c = jsonscan.New(out)
	c.Fields("reasoning_tokens", &u.Reasoning)
	u.CacheRead = cmp.Or(u.CacheRead, hits)
	// The total decides, because the name of a model or a host says nothing about how a gateway
	// counts.
	if u.Reasoning > 0 && total == u.Input+u.Output+u.Reasoning {
		u.Output += u.Reasoning
	}
	u.Raw = append(json.RawMessage(nil), raw...)
	return u
}
