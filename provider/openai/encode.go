package openai

import (
	"cmp"
	"strconv"
	"strings"

	dialects "github.com/pawl-go/pawl/internal/dialect"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// encoder appends a body.
type encoder struct {
	*dialect
	wire.Writer
	model   string
	tools   *wire.Toolset
	output  wire.Output // without a Schema if the model cannot enforce one
	facts   facts
	callers map[string][]byte // the programs that made calls, by call id
	local   bool              // in a user's message, which may name files of this machine
}

// encode appends the body of req to dst.
func (d *dialect) encode(dst []byte, name string, tools *wire.Toolset, output wire.Output, req *llm.Request) ([]byte,
	error) {
	name = cmp.Or(req.Model, name)
	e := encoder{dialect: d, Writer: wire.Writer{Provider: d.provider, Body: dst}, model: name, facts: d.factsOf(name),
		tools: tools, output: output}
	// A model without structured output rejects a schema. The run has put the schema into its
	// instructions (HoldsOutput).
	if !e.facts.holds {
		e.output = wire.Output{}
	}
	if err := wire.Check(d.provider, name, req, tools); err != nil {
		return dst, err
	}
	e.Begin(d.options(req))
	if e.Key("model") {
		e.String(name)
	}
	d.api.encode(&e, req)
	return e.Finish()
}

// options returns the request's options under the name of the server, or else of the API.
func (d *dialect) options(req *llm.Request) []byte {
	if o, ok := req.Settings.Options[d.provider]; ok {
		return o
	}
	return req.Settings.Options[d.id]
}

// sampling writes the settings that both APIs name alike.
func (e *encoder) sampling(s *llm.Settings, tools bool) {
	if s.Temperature != nil && e.Key("temperature") {
		e.Float("settings.temperature", *s.Temperature)
	}
	if s.TopP != nil && e.Key("top_p") {
		e.Float("settings.top_p", *s.TopP)
	}
	if s.Parallel != nil && tools && e.Key("parallel_tool_calls") {
		e.Bool(*s.Parallel)
	}
}

// source appends the address of media, or their data as a data: URI.
func (e *encoder) source(m llm.Media) {
	if m.URL != "" {
		e.String(m.URL)
		return
	}
	e.Raw(`"data:`)
	q := jsonscan.AppendString(nil, m.MIME)
	e.Body = append(e.Body, q[1:len(q)-1]...)
	e.Raw(`;base64,`)
	e.Base64(m.Data)
	e.Raw(`"`)
}

// fitting returns a call id that the server accepts. Other ids are replaced by a hash, the same
// for the call and its result, and different for different ids.
func (d *dialect) fitting(id string) string {
	switch {
	case d.mistral && !nineLetters(id):
		var short [9]byte
		for i, h := 0, wire.Hash(id); i < len(short); i, h = i+1, h/62 {
			short[i] = wire.Alphanumeric[h%62]
		}
		return string(short[:])
	case len(id) > d.maxID:
		return "call_" + strconv.FormatUint(wire.Hash(id), 36)
	}
	return id
}

func nineLetters(s string) bool {
	return len(s) == 9 && strings.Trim(s, wire.Alphanumeric) == ""
}

// resultText writes the texts of a result as one string. The APIs have no field for errors, so the
// text states it.
func (e *encoder) resultText(r *llm.ToolResult) {
	text := r.Text()
	if r.IsError {
		text = errorText(text)
	}
	e.String(text)
}

func errorText(text string) string {
	switch {
	case text == "":
		return "Error"
	case len(text) >= 5 && strings.EqualFold(text[:5], "error"):
		return text
	}
	return "Error: " + text
}

// read returns media with the bytes of a data: URI, or of a file of this machine if a user's
// message names it.
func (e *encoder) read(where string, m llm.Media) llm.Media {
	m, err := wire.ReadMedia(m, e.local)
	if err != nil {
		e.Fail(e.invalid(where, "%v", err))
	}
	return m
}

// uploaded writes the id of a file uploaded to this provider.
func (e *encoder) uploaded(where, id string) {
	if !e.compatible && strings.HasPrefix(id, "file_") {
		e.Fail(e.unsupported(where, "%s is a file at Anthropic; those at OpenAI begin with file-", id))
	}
	e.String(id)
}

func isMedia(p llm.Part) bool { _, ok := p.(llm.Media); return ok }

// mediaKind returns the form for a type of media: "image", "audio" or "file"; "" means unknown.
func mediaKind(m llm.Media) string {
	switch kind, _, _ := strings.Cut(m.MIME, "/"); kind {
	case "image":
		return "image"
	case "audio":
		return "audio"
	case "application", "text":
		return "file"
	case "":
		if m.URL != "" {
			return "image"
		}
	}
	return ""
}

// fileName returns a name for a document without one. Servers read its extension.
func fileName(mime string) string {
	switch mime {
	case "application/pdf":
		return "file.pdf"
	case "application/json":
		return "file.json"
	case "text/markdown":
		return "file.md"
	case "text/csv":
		return "file.csv"
	case "text/html":
		return "file.html"
	}
	return "file.txt"
}

// schema writes the members of a format with a schema for the reply.
func (e *encoder) schema() {
	e.Raw(`"name":"output","strict":`)
	e.Bool(e.output.Dialect == dialects.OpenAIStrict)
	e.Raw(`,"schema":`)
	e.Body = append(e.Body, e.output.Schema...)
}

// choice writes a tool choice: a word, one tool between begin and end, or several tools in a set.
func (e *encoder) choice(c llm.ToolChoice, begin, end, beginSet, endSet string) {
	switch c.Mode {
	case llm.ToolAuto:
		e.Raw(`"auto"`)
		return
	case llm.ToolNone:
		e.Raw(`"none"`)
		return
	case llm.ToolRequired:
		e.Raw(`"required"`)
		return
	}
	if len(c.Names) > 1 {
		e.Raw(beginSet)
	}
	for i, n := range c.Names {
		if i > 0 {
			e.Raw(",")
		}
		e.Quote(begin, e.tools.ToWire(n), end)
	}
	if len(c.Names) > 1 {
		e.Raw(endSet)
	}
}
