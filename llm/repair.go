package llm

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Mend is a Fault that Heal has put right.
type Mend struct {
	Fault
	Did string `json:"did"` // what was done, for people
}

// Notice returns what an observer is told of m: the code "healed", a sentence, and m itself as Data.
func (m Mend) Notice() *Notice {
	data, _ := json.Marshal(m) // strings and numbers
	return &Notice{Code: "healed", Text: fmt.Sprintf("message %d: %s; %s", m.Message, m.Fault.Text, m.Did), Data: data}
}

// Heal returns msgs as a valid transcript, and what was done to them: as little as makes them one. Whatever was said stays as it is:
//
//   - a call of a reply before the last that has no result gets an error that says so; those of the last reply stay open
//   - results move right behind their reply, in the order of its calls, from wherever after it they stand
//   - a result without a call before it, and a second one, is dropped, and so is a part that its message cannot hold, a decision, and a message
//     that has no parts. A reply without parts stays: it is counted in the keys of a run
//   - a call without an id, or with that of another call of its reply, gets its own, and so does its result
//
// When there is a fault that has no mend (FaultUnknownRole, FaultUnknownPart), nothing is mended. A transcript without a fault is returned
// itself. msgs are never changed; what is returned shares what it has in common with them.
func Heal(msgs []Message) (healed []Message, mends []Mend) { return Rules{}.Heal(msgs) }

// Heal is the function Heal with the rules of an API: open calls of the last reply are answered as the others are, where the user must
// speak first a message that says what is missing is put in front, and reasoning that cannot end a reply is dropped.
func (r Rules) Heal(msgs []Message) (healed []Message, mends []Mend) {
	healed, mends, _ = r.heal(msgs)
	return healed, mends
}

func (r Rules) heal(msgs []Message) ([]Message, []Mend, []Fault) {
	if r.sound(msgs) {
		return msgs, nil, nil
	}
	healed, mends, lost := r.mend(msgs)
	if len(lost) > 0 {
		return msgs, nil, lost
	}
	return healed, mends, nil
}

const (
	notRecorded   = "No result was recorded: the run was interrupted. The call may or may not have been carried out; look before you send it again."
	notFromStart  = "What was said before this is not recorded."
	droppedPart   = "the part is dropped"
	droppedResult = "the result is dropped"
)

// mending is one pass over messages that have a fault.
type mending struct {
	rules Rules
	kept  []keptMessage
	calls map[string]*sameID // by id as it was given, of the latest reply that has it
	mends []Mend
	lost  []Fault // without a mend
}

// keptMessage is a message that is not dropped.
type keptMessage struct {
	Message
	at      int    // where it stood
	results []Part // of a reply: for each of its calls; nil: none yet
	ids     []string
	order   int  // the call of the last result that stands in place
	mixed   bool // those that stand in place are out of order
}

// sameID are the calls of a reply that were given one id.
type sameID struct {
	reply  int
	places []int // among the reply's calls
	next   int   // the one that gets the next result
}

func (r Rules) mend(msgs []Message) ([]Message, []Mend, []Fault) {
	h := &mending{rules: r, kept: make([]keptMessage, 0, len(msgs)), calls: map[string]*sameID{}}
	for i, m := range msgs {
		h.keep(i, m)
	}
	for k := range h.kept {
		h.pair(k)
	}
	out := h.joined()
	slices.SortStableFunc(h.mends, func(a, b Mend) int { return cmp.Compare(a.Message, b.Message) })
	return out, h.mends, h.lost
}

func sortFaults(faults []Fault) {
	slices.SortStableFunc(faults, func(a, b Fault) int { return cmp.Compare(a.Message, b.Message) })
}

func (h *mending) did(f Fault, did string) { h.mends = append(h.mends, Mend{f, did}) }

// keep takes message i without the parts that it cannot hold. Results stay for now, whoever speaks: pair puts them where they belong.
func (h *mending) keep(i int, m Message) {
	switch m.Role {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
	default:
		h.lost = append(h.lost, newFault(FaultUnknownRole, i, -1, "unknown role %q; known: system, developer, user, assistant, tool", m.Role))
		return
	}
	parts := make([]Part, 0, len(m.Parts))
	for j, p := range m.Parts {
		result, isResult := p.(ToolResult)
		_, isDecision := p.(Decision)
		switch {
		case !known(p):
			h.lost = append(h.lost, newFault(FaultUnknownPart, i, j, "a part is nil or of an unknown type (%T)", p))
		case isDecision:
			h.did(newFault(FaultPart, i, j, "a transcript cannot hold a decision"), droppedPart)
		case isResult:
			parts = append(parts, h.plain(i, j, result))
		default:
			if err := allowed(m.Role, p); err != nil {
				h.did(newFault(FaultPart, i, j, "%v", err), droppedPart)
				continue
			}
			parts = append(parts, p)
		}
	}
	if len(m.Parts) == 0 && m.Role != RoleAssistant {
		h.did(newFault(FaultEmpty, i, -1, "the message is empty"), "the message is dropped")
	}
	m.Parts = parts
	if len(m.Parts) > 0 || m.Role == RoleAssistant {
		h.kept = append(h.kept, keptMessage{Message: m, at: i, order: -1})
	}
}

// plain returns a result without the parts that it cannot hold.
func (h *mending) plain(i, j int, r ToolResult) ToolResult {
	var parts []Part
	for n, p := range r.Parts {
		switch p.(type) {
		case Text, Media:
			parts = append(parts, p)
		default:
			if !known(p) {
				h.lost = append(h.lost, newFault(FaultUnknownPart, i, j, "part %d of a result is nil or of an unknown type (%T)", n, p))
				continue
			}
			h.did(newFault(FaultPart, i, j, "a result cannot hold %s", partName(p)), droppedPart)
		}
	}
	if len(parts) < len(r.Parts) {
		r.Parts = parts
	}
	return r
}

// pair notes the calls of kept message k, and takes its results to their calls.
func (h *mending) pair(k int) {
	m := &h.kept[k]
	if m.Role == RoleAssistant {
		h.name(k)
	}
	parts := m.Parts[:0]
	for _, p := range m.Parts {
		if r, ok := p.(ToolResult); ok {
			h.answer(k, r)
		} else {
			parts = append(parts, p)
		}
	}
	m.Parts = parts
}

// name gives each call of reply k an id of its own.
func (h *mending) name(k int) {
	m := &h.kept[k]
	taken := map[string]bool{}
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			taken[c.ID] = true
		}
	}
	tried := map[string]int{}
	for j, p := range m.Parts {
		c, ok := p.(ToolCall)
		if !ok {
			continue
		}
		same := h.calls[c.ID]
		if same == nil || same.reply != k {
			same = &sameID{reply: k}
			h.calls[c.ID] = same
		}
		if c.ID == "" || len(same.places) > 0 {
			was, base, n := c.ID, cmp.Or(c.ID, "call"), tried[c.ID]
			for n++; ; n++ {
				if c.ID = base + "_" + strconv.Itoa(n); !taken[c.ID] {
					break
				}
			}
			tried[was] = n
			taken[c.ID] = true
			m.Parts[j] = c
			h.did(newFault(FaultCallID, m.at, -1, "call id %q is empty or there twice; each call of a reply needs its own", was), "the call is now "+c.ID)
		}
		same.places = append(same.places, len(m.ids))
		m.ids = append(m.ids, c.ID)
	}
	m.results = make([]Part, len(m.ids))
}

// answer takes a result that stands in kept message k to the call of that id in the latest reply before it. One that stands before its call
// answers nothing: ids begin anew with each reply for some providers, so it may be another call's.
func (h *mending) answer(k int, r ToolResult) {
	m := &h.kept[k]
	same := h.calls[r.CallID]
	switch {
	case same == nil:
		h.did(newFault(FaultOrphan, m.at, -1, "the result for call %q answers no call before it", r.CallID), droppedResult)
		return
	case same.next == len(same.places):
		h.did(newFault(FaultSecond, m.at, -1, "call %q has a result already", r.CallID), droppedResult)
		return
	}
	place := same.places[same.next]
	same.next++
	reply := &h.kept[same.reply]
	r.CallID = reply.ids[place]
	reply.results[place] = r
	switch {
	case k != same.reply+1 || m.Role != RoleTool:
		h.did(newFault(FaultMoved, m.at, -1, "the result for call %q does not stand right behind its reply", r.CallID), "it is moved there, behind message "+strconv.Itoa(reply.at))
	case place < reply.order:
		reply.mixed = true
	default:
		reply.order = place
	}
}

// joined returns the transcript of what is kept.
func (h *mending) joined() []Message {
	last := len(h.kept) - 1
	for last >= 0 && h.kept[last].Role != RoleAssistant {
		last--
	}
	out := make([]Message, 0, len(h.kept)+2)
	begun := !h.rules.UserFirst
	for k := range h.kept {
		m := &h.kept[k]
		if m.Role == RoleTool || len(m.Parts) == 0 && m.Role != RoleAssistant {
			continue
		}
		if !begun && begins(&m.Message) {
			if begun = true; m.Role != RoleUser {
				h.did(newFault(FaultStart, m.at, -1, "the API wants the user to speak first"), "a message that says what is missing is put in front")
				out = append(out, User(notFromStart))
			}
		}
		if n := len(m.Parts); m.Role == RoleAssistant {
			if m.Parts = m.Parts[:h.rules.cutBefore(&m.Message)]; len(m.Parts) < n {
				h.did(newFault(FaultEnd, m.at, len(m.Parts), "the API takes no reply that ends with reasoning"), "the reasoning is dropped")
			}
		}
		out = append(out, m.Message)
		if results := h.resultsOf(m, k == last && !h.rules.Settled); len(results) > 0 {
			out = append(out, Message{RoleTool, results})
		}
	}
	return out
}

// resultsOf returns the results of a reply in the order of its calls.
func (h *mending) resultsOf(m *keptMessage, open bool) []Part {
	if m.mixed {
		h.did(newFault(FaultOrder, m.at, -1, "the results behind the reply are not in the order of its calls"), "they are put in order")
	}
	results := m.results[:0]
	for place, p := range m.results {
		if p == nil && !open {
			r := ErrorResult(notRecorded)
			r.CallID = m.ids[place]
			p = r
			h.did(newFault(FaultUnanswered, m.at, -1, "call %q has no result", r.CallID), "it is answered with an error that says so")
		}
		if p != nil {
			results = append(results, p)
		}
	}
	return results
}

// HealRequest returns req with its messages healed, and what was done to them; req itself if there is no fault. Models call it with
// the request that Stream was given, before they send anything.
func (r Rules) HealRequest(req *Request) (*Request, []Mend) {
	healed, mends := r.Heal(req.Messages)
	if len(mends) == 0 {
		return req, nil
	}
	sent := *req
	sent.Messages = healed
	return &sent, mends
}
