package gemini

import (
	"cmp"
	"slices"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider/internal/wire"
)

// place is the position of a part: the message, and the part in it.
type place struct{ message, part int }

func (p place) call(messages []llm.Message) llm.ToolCall {
	return messages[p.message].Parts[p.part].(llm.ToolCall)
}

func (p place) result(messages []llm.Message) llm.ToolResult {
	return messages[p.message].Parts[p.part].(llm.ToolResult)
}

func (p place) String() string { return wire.Field(p.message, p.part) }

// answer is the position of a result.
type answer struct {
	place
	used bool
}

// beside is media that a result cannot contain. It follows the results.
type beside struct {
	llm.Media
	call place
	of   place // the result
}

// fromResults writes the results of one round, which begin with message i, and returns the last
// message with some of them. The API identifies results by the name of their function and by their
// order, and requires one for each call, in one content.
func fromResults(e *encoder, messages []llm.Message, i int) int {
	var answers []answer
	last := i
	for k := i; k < len(messages) && (messages[k].Role == llm.RoleTool || wire.Instructs(&messages[k])); k++ {
		if messages[k].Role != llm.RoleTool {
			continue
		}
		last = k
		for j, p := range messages[k].Parts {
			if _, ok := p.(llm.ToolResult); !ok {
				e.Fail(invalid(wire.Field(k, j), "%T has no place among results", p))
				continue
			}
			answers = append(answers, answer{place: place{k, j}})
		}
	}
	var media []beside
	open := answers // from the first that is not used
	// Results are written in the order of the calls, because that order is all that the API has to
	// match calls without an id.
	for _, at := range e.calls {
		for len(open) > 0 && open[0].used {
			open = open[1:]
		}
		c := at.call(messages)
		n := slices.IndexFunc(open, func(a answer) bool { return !a.used && a.result(messages).CallID == c.ID })
		if n < 0 {
			e.Fail(invalid("messages", "message %d has no result of the call %s of %s; Gemini wants one for each call", i, c.ID, c.Name))
			continue
		}
		a := &open[n]
		a.used = true
		e.part("user")
		r := a.result(messages)
		for _, m := range fromResult(e, &c, &r, a.place) {
			media = append(media, beside{m, at, a.place})
		}
	}
	for k := range answers {
		if a := &answers[k]; !a.used {
			e.Fail(invalid(a.String(), "no call of the reply before has the id %q, so the name of its function is not known", a.result(messages).CallID))
		}
	}
	// Media that a result cannot contain follow all results, each group after a line that names its
	// call.
	for k, m := range media {
		if k == 0 || m.call != media[k-1].call {
			of := m.call.call(messages)
			text := "From the result of " + of.Name
			if !made(of.ID) {
				text += " (call " + of.ID + ")"
			}
			e.part("user")
			e.text(text + ":")
			e.Raw("}")
		}
		e.part("user")
		fromMedia(e, m.of.String(), m.Media, false)
		e.Raw("}")
	}
	e.calls = e.calls[:0]
	return last
}

// fromResult writes the result of c, which is at a place. It returns the media that must follow
// it: Gemini 3 accepts some media in a result, older models none.
func fromResult(e *encoder, c *llm.ToolCall, r *llm.ToolResult, at place) (media []llm.Media) {
	e.Raw(`{"functionResponse":{`)
	e.id(c.ID)
	e.Quote(`"name":`, e.tools.ToWire(c.Name))
	text := r.Text()
	if r.IsError {
		text = cmp.Or(text, "error")
		e.Raw(`,"response":{"error":`)
	} else {
		e.Raw(`,"response":{"result":`)
	}
	e.String(text)
	e.Raw("}")
	inside := 0
	for _, p := range r.Parts {
		switch p := p.(type) {
		case llm.Text:
		case llm.Media:
			if e.facts.version < 3 || !slices.Contains(ofResults, typeOf(p)) {
				media = append(media, p)
				continue
			}
			inside++
			if inside == 1 {
				e.Raw(`,"parts":[`)
			}
			e.Comma()
			fromMedia(e, at.String(), p, false)
			e.Raw("}")
		default:
			e.Fail(invalid(at.String(), "%T has no place in a result", p))
		}
	}
	if inside > 0 {
		e.Raw("]")
	}
	e.Raw("}}")
	return media
}
