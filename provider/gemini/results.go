package gemini

import (
	"github.com/pawl-go/pawl"
)

// answer is a result, and where it stands.
type answer struct {
	pawl.ToolResult
	where string
	used  bool
}

// beside is a medium that cannot be part of its result and follows the results instead.
type beside struct {
	pawl.Media
	call  *pawl.ToolCall
	where string
}

// fromResults writes the results of one round, which begin with message i, and returns the last message that has some of them.
// The API knows them by the name of their function and by their order, and wants as many as there were calls, in one content.
func fromResults(e *encoder, messages []pawl.Message, i int) int {
	var answers []answer
	last := i
	for k := i; k < len(messages) && (messages[k].Role == pawl.RoleTool || instructs(&messages[k])); k++ {
		if messages[k].Role != pawl.RoleTool {
			continue
		}
		last = k
		for j, p := range messages[k].Parts {
			r, ok := p.(pawl.ToolResult)
			if !ok {
				e.Fail(invalid(field(k, j), "%T has no place among results", p))
				continue
			}
			answers = append(answers, answer{ToolResult: r, where: field(k, j)})
		}
	}
	var media []beside
	for n := range e.calls {
		c := &e.calls[n]
		a := find(answers, n, c.ID)
		if a == nil {
			e.Fail(invalid("messages", "message %d has no result of the call %s of %s; Gemini wants one for each call", i, c.ID, c.Name))
			continue
		}
		a.used = true
		e.part("user")
		media = fromResult(e, c, a, media)
	}
	for k := range answers {
		if a := &answers[k]; !a.used {
			e.Fail(invalid(a.where, "no call of the reply before has the id %q, so the name of its function is not known", a.CallID))
		}
	}
	var of *pawl.ToolCall
	for _, m := range media {
		if m.call != of {
			of = m.call
			text := "From the result of " + of.Name
			if !made(of.ID) {
				text += " (call " + of.ID + ")"
			}
			e.part("user")
			e.text(text + ":")
			e.Raw("}")
		}
		e.part("user")
		fromMedia(e, m.where, m.Media, false)
		e.Raw("}")
	}
	e.calls = nil
	return last
}

// find returns the result of a call, which mostly stands where the call stood.
func find(answers []answer, likely int, id string) *answer {
	if likely < len(answers) && !answers[likely].used && answers[likely].CallID == id {
		return &answers[likely]
	}
	for k := range answers {
		if a := &answers[k]; !a.used && a.CallID == id {
			return a
		}
	}
	return nil
}

// fromResult writes the result of c, and adds to media what cannot be part of it. Gemini 3 takes some media inside a result, its
// predecessors none.
func fromResult(e *encoder, c *pawl.ToolCall, a *answer, media []beside) []beside {
	e.Raw(`{"functionResponse":{`)
	e.id(c.ID)
	e.Raw(`"name":`)
	e.String(e.tools.ToWire(c.Name))
	text := a.Text()
	if a.IsError {
		if text == "" {
			text = "error"
		}
		e.Raw(`,"response":{"error":`)
	} else {
		e.Raw(`,"response":{"result":`)
	}
	e.String(text)
	e.Raw("}")
	inside := 0
	for _, p := range a.Parts {
		switch p := p.(type) {
		case pawl.Text:
		case pawl.Media:
			if e.facts.version < 3 || !fitsResult(typeOf(p)) {
				media = append(media, beside{p, c, a.where})
				continue
			}
			if inside++; inside == 1 {
				e.Raw(`,"parts":[`)
			}
			e.Comma()
			fromMedia(e, a.where, p, false)
			e.Raw("}")
		default:
			e.Fail(invalid(a.where, "%T has no place in a result", p))
		}
	}
	if inside > 0 {
		e.Raw("]")
	}
	e.Raw("}}")
	return media
}
