package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"

	dialects "github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// rules are the API's requirements on messages.
var rules = wire.Rules{HistoryRules: llm.HistoryRules{Settled: true, UserFirst: true,
	NotLast: []string{"thinking", "redacted_thinking"}}}

// encoder appends a body.
type encoder struct {
	*dialect
	wire.Writer
	model  string
	facts  facts
	tools  *wire.Toolset
	output []byte // the enforced schema of the reply; nil means none
	// enforced means that the server enforces the schema of replies. Otherwise the prompt asks for
	// it.
	enforced bool
	own      options
	ids      callIDs
	cache    marks

	container string // in which the server runs code; "" means none

	role  string // of the current message; "" means none
	turns turns  // user turns, for the moving marks
}

// encode appends the body of req to dst.
func (d *dialect) encode(dst []byte, name string, tools *wire.Toolset, output wire.Output, req *llm.Request,
	own options) ([]byte, error) {
	name = cmp.Or(req.Model, name)
	if err := wire.Check(provider, name, req, tools, own.names...); err != nil {
		return dst, err
	}
	req = d.held(req)
	e := encoder{dialect: d, Writer: wire.Writer{Provider: provider, Body: dst}, model: name, facts: d.factsOf(name),
		tools: tools, own: own, container: container(d.tag, req.Messages)}
	req, err := d.withSummaries(req, e.facts, own)
	if err != nil {
		return dst, err
	}
	e.enforced = d.enforces(name, output)
	// A summary is no answer, so the schema of answers does not apply to it.
	if e.enforced && own.compaction == nil {
		e.output = output.Schema
	}
	e.Begin(own.body)
	fromRequest(&e, req)
	return e.Finish()
}

// summaries returns the reader of the server's summaries.
func (d *dialect) summaries() summaries { return summaries{tag: d.tag} }

// withSummaries returns req without the messages that the last signed summary replaces.
func (d *dialect) withSummaries(req *llm.Request, f facts, own options) (*llm.Request, error) {
	s := d.summaries()
	if !anyPart(req.Messages, s.isSigned) {
		return req, nil
	}
	if field := excludedBySigned(own.body); field != "" {
		return nil, unsupported("settings.options.anthropic", "Anthropic takes %s not together with the signed summary (compaction) "+
			"that the conversation has; leave it out", field)
	}
	if f.bound {
		s.isThinking = d.isThinking // the summary changed what stands before it
	}
	r := new(*req)
	r.Messages = s.sent(req.Messages)
	return r, nil
}

// checkOrder returns the error of a request whose options ask for a summary together with something
// that the API does not accept with it. holds means that the server enforces the schema of replies.
func checkOrder(req *llm.Request, own options, holds bool) error {
	forced := req.Choice.Mode == llm.ToolRequired || req.Choice.Mode == llm.ToolNamed
	member := excludesSummary(own.body)
	conflict := ""
	switch {
	case own.compaction == nil:
		return nil
	case member != "":
		conflict = "settings.options.anthropic." + member
	case len(req.Settings.StopSequences) > 0:
		conflict = "settings.stop (stop_sequences)"
	case forced && len(req.Tools) > 0:
		conflict = "a forced tool choice (tool_choice)"
	case len(req.Output) > 0 && holds:
		conflict = "an output schema (output_config.format)"
	default:
		return nil
	}
	return unsupported("settings.options.anthropic.compaction",
		"Anthropic takes a request for a summary (compaction) not together with %s; leave out one of them", conflict)
}

// enforces reports whether the server enforces the schema of output for the named model.
func (d *dialect) enforces(name string, output wire.Output) bool {
	return d.newest() && d.factsOf(name).holds && output.Schema != nil
}

// fromRequest writes the members of a body. Members that do not change within a conversation come
// first, then the messages, then the rest, so that the body of a turn begins with the bytes of the
// turn before.
func fromRequest(e *encoder, req *llm.Request) {
	if e.vertex {
		if e.Key("anthropic_version") {
			e.Raw(`"vertex-2023-10-16"`)
		}
	} else if e.Key("model") {
		e.String(e.model)
	}
	t := e.toThinking(&req.Settings, req.Messages)
	if e.Key("max_tokens") {
		e.Int(t.maxTokens)
	}

	e.cache = e.toMarks()
	lead := fromSystem(e, req)
	offered := !e.tools.Empty() || len(e.own.tools) > 0 // false if each tool was left out
	if offered && e.Key("tools") {
		fromTools(e)
	}
	if e.Key("messages") {
		e.Raw("[")
		fromMessages(e, req.Messages, lead)
		e.Raw("]")
	}
	fromReplySettings(e, req, t, offered)
	fromThinking(e, t)
	if (t.effort != "" || e.output != nil) && e.Key("output_config") {
		fromOutput(e, t)
	}
	if e.own.compaction != nil && e.Key("compaction") {
		e.Body = append(e.Body, e.own.compaction...)
	}
	if e.cache.fixed && e.Key("cache_control") {
		e.Raw(lifetimeMarks[e.ttl])
	}
	fromContainer(e)
	if !req.Whole && e.Key("stream") {
		e.Raw("true")
	}
}

// fromContainer writes the container in which the server runs code. Options of it, such as skills,
// apply to the container of the last reply that used one, unless they name another.
func fromContainer(e *encoder) {
	options := e.own.container
	if options != nil && e.container != "" && wire.Member(options, "id") == nil {
		id := jsonscan.AppendString([]byte(`{"id":`), e.container)
		if members := bytes.TrimSpace(bytes.TrimSpace(options)[1:]); members[0] != '}' {
			id = append(id, ',')
		}
		options = append(id, bytes.TrimSpace(options)[1:]...)
	}
	switch {
	case options != nil && e.Key("container"):
		e.Body = append(e.Body, options...)
	case options == nil && e.container != "" && e.Key("container"):
		e.String(e.container)
	}
}

// fromTools writes the tools of the request and of the options.
func fromTools(e *encoder) {
	e.Body = append(e.Body, '[')
	if !e.tools.Empty() {
		e.Body = append(e.Body, e.tools.Body[1:len(e.tools.Body)-1]...)
		if e.cache.on {
			e.mark() // before the options' tools, which may have marks
		}
	}
	if len(e.own.tools) > 0 {
		e.Comma()
		e.Body = append(e.Body, e.own.tools...)
	}
	e.Body = append(e.Body, ']')
}

// fromReplySettings writes the tool choice and the settings of sampling. offered means that the
// request has tools. A request for a summary has no reply, and the API rejects what shapes one.
func fromReplySettings(e *encoder, req *llm.Request, t thinking, offered bool) {
	summarizes := e.own.compaction != nil
	forced := req.Choice.Mode == llm.ToolRequired || req.Choice.Mode == llm.ToolNamed
	chooses := len(req.Tools) > 0 && offered
	forbidden := summarizes && forced
	if chooses && !forbidden && e.Key("tool_choice") {
		fromChoice(e, req.Choice, req, t.on)
	}

	fromSampling(e, &req.Settings, t)
	if len(req.Settings.StopSequences) > 0 && !summarizes && e.Key("stop_sequences") {
		e.Strings(req.Settings.StopSequences)
	}
}

// fromSampling writes the settings of sampling.
func fromSampling(e *encoder, s *llm.Settings, t thinking) {
	if s.Temperature != nil && e.Key("temperature") {
		if t.on && *s.Temperature != 1 {
			e.Fail(unsupported("settings.temperature", "Anthropic takes no temperature but 1 while the model thinks"))
		}
		e.Float("settings.temperature", *s.Temperature)
	}
	if s.TopP != nil && e.Key("top_p") {
		e.Float("settings.top_p", *s.TopP)
	}
}

// fromOutput writes how much the model thinks and the form of its answer.
func fromOutput(e *encoder, t thinking) {
	e.Raw("{")
	if t.effort != "" {
		e.Quote(`"effort":`, t.effort)
	}
	if e.output != nil {
		e.Comma()
		e.Raw(`"format":{"type":"json_schema","schema":`)
		e.Body = append(e.Body, e.output...)
		e.Raw(`}`)
	}
	e.Raw("}")
}

// outputForm is how the server enforces a schema: Claude from 4.5 on. In other cases the system
// prompt asks for it.
var outputForm = wire.OutputForm{Dialects: []*dialects.Dialect{dialects.AnthropicStrict}}

// toolForm is the API's form of tools.
var toolForm = wire.ToolForm{Provider: provider, Names: wire.NameRule{Max: 128, Also: "-"},
	Dialect: dialects.Anthropic, FromTool: fromTool}

// fromTool appends the definition of a tool.
func fromTool(dst []byte, name string, t *llm.ToolSpec, schema json.RawMessage, _ bool) []byte {
	dst = append(dst, `{"name":`...)
	dst = jsonscan.AppendString(dst, name)
	if t.Description != "" {
		dst = append(dst, `,"description":`...)
		dst = jsonscan.AppendString(dst, t.Description)
	}
	dst = append(dst, `,"input_schema":`...)
	dst = append(dst, schema...)
	return append(dst, '}')
}

// fromChoice writes the tool choice. The choice none still sends the tools, because the prompt
// cache begins with them. A forced call excludes thinking with a budget; adaptive thinking yields
// to it, as recorded traffic shows.
func fromChoice(e *encoder, c llm.ToolChoice, req *llm.Request, thinks bool) {
	forced := c.Mode == llm.ToolRequired || c.Mode == llm.ToolNamed
	if forced && thinks {
		e.Fail(unsupported("tool_choice", "Anthropic refuses a forced call (required or named) while the model thinks: "+
			"what it thinks is to decide whether it calls a tool. Let the choice be auto, ask for no thinking "+
			"(settings.effort, options.thinking), or take a model that decides itself when to think (Claude from 4.6 on)"))
	}
	switch {
	case c.Mode == llm.ToolNone:
		e.Raw(`{"type":"none"}`)
		return
	case c.Mode == llm.ToolRequired:
		e.Raw(`{"type":"any"`)
	case c.Mode == llm.ToolNamed && len(c.Names) == 1:
		e.Quote(`{"type":"tool","name":`, e.tools.ToWire(c.Names[0]))
	case c.Mode == llm.ToolNamed && all(c.Names, req.Tools) && len(e.own.tools) == 0:
		e.Raw(`{"type":"any"`)
	case c.Mode == llm.ToolNamed:
		e.Fail(unsupported("tool_choice", "Anthropic can force one named tool, or any of all tools, but not one of some: "+
			"name one tool, or offer only those to be chosen from and ask for required"))
	default:
		e.Raw(`{"type":"auto"`)
	}
	if p := req.Settings.Parallel; p != nil && !*p {
		e.Raw(`,"disable_parallel_tool_use":true`)
	}
	e.Raw(`}`)
}

// all reports whether names are the names of all tools.
func all(names []string, tools []*llm.ToolSpec) bool {
	named := map[string]bool{}
	for _, n := range names {
		named[n] = true
	}
	return len(named) == len(tools) // Check has verified that each name is offered
}
