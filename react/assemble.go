package react

// assemble.go: makes a decision of the sections of a reply.

import (
	"errors"
	"slices"
	"strings"
)

const cutObservation = "cut off an observation that the model wrote itself"

var errBoth = errors.New("the reply holds both an action and a final answer; give one of them: " +
	"the action, if its result is needed first")

// assembly makes a decision of the sections of a reply, in their order.
type assembly struct {
	text     string
	sections []section
	fenced   bool   // the reply begins with a fence
	final    bool   // a final answer is there
	acts     []bool // of actsLater

	read     Decision
	thoughts []string
	calls    []Call
	answered bool
	whole    *Decision // a decision that was read as one; nil means none
}

// assemble makes a decision of the sections of text.
func assemble(sections []section, text string) (Decision, error) {
	a := &assembly{
		text:     text,
		sections: sections,
		fenced:   fenceOpen.MatchString(text),
		final:    hasFinal(sections, text),
		acts:     actsLater(sections),
	}
	for i := range sections {
		complete, err := a.add(i)
		if err != nil {
			return a.read, err
		}
		// The first decision counts: the model wrote the rest before it knew a result.
		if complete {
			break
		}
	}
	return a.decision()
}

// decision returns the decision of the sections that were added.
func (a *assembly) decision() (Decision, error) {
	if a.whole != nil {
		return *a.whole, nil
	}
	d := a.read
	d.Thought = strings.TrimSpace(strings.TrimSuffix(strings.Join(a.thoughts, "\n"), "```"))
	switch {
	case a.answered:
		d.Type = FinalAnswer
	case len(a.calls) > 0:
		d.setCalls(a.calls)
	default:
		return d, errors.New("the reply holds neither an action nor a final answer")
	}
	return d, nil
}

// setCalls makes d a decision for calls.
func (d *Decision) setCalls(calls []Call) {
	d.Type = CallTool
	d.Tool = calls[0].Tool
	d.Args = calls[0].Args
	d.More = nil
	if len(calls) > 1 {
		d.More = slices.Clip(calls[1:])
	}
}

// add adds section i. complete means that the rest of the reply does not count.
func (a *assembly) add(i int) (complete bool, err error) {
	s := a.sections[i]
	switch s.kind {
	case noKind:
		words := strings.TrimSpace(fenceOpen.ReplaceAllString(s.text, ""))
		if strings.Trim(words, "`") != "" {
			a.think(words)
		}
	case thoughtKind:
		if len(a.calls) == 0 {
			a.think(s.text)
		}
	case actionKind:
		return a.addAction(i), nil
	case inputKind:
		return a.addInput(s.text)
	case callKind:
		a.calls = append(a.calls, lineCall(s.text, &a.read))
	case observationKind:
		a.read.Notes = append(a.read.Notes, cutObservation)
		// At the beginning it is an echo of a result, before the decision.
		return len(a.calls) > 0 || len(a.thoughts) > 0, nil
	case answerKind:
		return a.addAnswer(i)
	}
	return false, nil
}

// think adds a thought.
func (a *assembly) think(text string) {
	text = strings.TrimSpace(text)
	if text != "" {
		a.thoughts = append(a.thoughts, text)
	}
}

// follows reports whether a section of the kind k stands right after section i.
func (a *assembly) follows(i int, k kind) bool {
	return i+1 < len(a.sections) && a.sections[i+1].kind == k
}

// addAction adds the action in section i. It reports whether the decision is complete.
func (a *assembly) addAction(i int) bool {
	text := a.sections[i].text
	if value, n := leadingJSON(text); n > 0 { // Action: {"action": …, "action_input": …}
		inner, ok := decisionOf([]byte(value))
		if ok {
			a.think(inner.Thought)
			inner.Thought = strings.Join(a.thoughts, "\n")
			a.whole = &inner
			return true
		}
	}

	name, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.Contains(strings.TrimSpace(name), " ") && a.follows(i, actionKind) {
		a.think(text) // words about the action that follows
		return false
	}
	tool := strings.Trim(name, " \t\r\"'`*.")
	a.calls = append(a.calls, Call{Tool: tool})
	// Some models answer with an action of that name, as the prompts of older runtimes asked them
	// to.
	if !strings.EqualFold(tool, "final answer") || !a.follows(i, inputKind) {
		return false
	}

	d := a.read
	d.Type = FinalAnswer
	d.Answer = strings.TrimSpace(a.sections[i+1].text)
	d.Thought = strings.Join(a.thoughts, "\n")
	a.whole = &d
	return true
}

// addInput adds the arguments of the last action. It reports whether the decision is complete,
// because something was cut off behind them.
func (a *assembly) addInput(text string) (complete bool, err error) {
	if len(a.calls) == 0 {
		return false, errors.New("the reply has an Action Input, but no Action before it")
	}
	c := &a.calls[len(a.calls)-1]
	if c.Args != nil {
		return false, nil
	}
	noted := len(a.read.Notes)
	c.Args = inputOf(text, a.fenced, &a.read)
	return len(a.read.Notes) > noted, nil
}

// addAnswer adds the answer in section i, which completes the decision.
func (a *assembly) addAnswer(i int) (complete bool, err error) {
	s := a.sections[i]
	label := a.text[s.start:s.body]
	tag := strings.HasPrefix(label, "<")
	if a.final && !isFinal(label) {
		a.think(s.text)
		return false, nil
	}
	if len(a.calls) == 0 && !tag && a.acts[i] {
		a.think(s.text) // it leads up to an action
		return false, nil
	}
	// A call and an answer in one reply: the answer rests on a result that the model has invented.
	// It is asked again.
	if len(a.calls) > 0 {
		return false, errBoth
	}

	answer := s.text
	if !tag {
		answer = a.answerFrom(i)
	}
	answer = strings.TrimSpace(answer)
	// The fence was around the whole reply. Its end is not a part of the answer.
	if a.fenced && strings.Count(answer, "```")%2 == 1 {
		answer = strings.TrimSpace(strings.TrimSuffix(answer, "```"))
	}
	a.read.Answer = answer
	a.answered = true
	return true, nil
}

// answerFrom returns the answer that begins with section i and may have labels in it. It ends
// before an observation.
func (a *assembly) answerFrom(i int) string {
	body := a.sections[i].body
	for _, later := range a.sections[i+1:] {
		if later.kind == observationKind {
			a.read.Notes = append(a.read.Notes, cutObservation)
			return a.text[body:later.start]
		}
	}
	return a.text[body:]
}

// hasFinal reports whether there is a final answer, so that "Answer:" alone is part of a thought.
func hasFinal(sections []section, text string) bool {
	return slices.ContainsFunc(sections,
		func(s section) bool { return s.kind == answerKind && isFinal(text[s.start:s.body]) })
}

// actsLater reports for each section whether a whole action follows it before any observation. An
// answer in such a section only leads up to the action.
func actsLater(sections []section) []bool {
	acts := make([]bool, len(sections))
	for i := len(sections) - 2; i >= 0; i-- {
		next := sections[i+1]
		switch {
		case next.kind == observationKind:
		case next.kind == actionKind && i+2 < len(sections) && sections[i+2].kind == inputKind:
			acts[i] = true
		default:
			acts[i] = acts[i+1]
		}
	}
	return acts
}

// isFinal reports whether a label can only mean the answer: a tag, or "Final Answer:".
func isFinal(label string) bool {
	return strings.HasPrefix(label, "<") || strings.Contains(strings.ToLower(label), "final")
}
