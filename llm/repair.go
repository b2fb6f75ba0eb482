package llm

// repair.go: Repair makes the smallest change that turns messages into a valid conversation.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Repaired is a HistoryFault that Repair has repaired.
type Repaired struct {
	HistoryFault
	Action string `json:"did"` // the repair, for people
}

// Notice returns the notice for observers: the code "healed", a sentence, and m itself as Data.
func (m Repaired) Notice() *Notice {
	data, _ := json.Marshal(m) // strings and numbers: no error is possible
	return &Notice{Code: "healed", Text: fmt.Sprintf("message %d: %s; %s", m.Message, m.HistoryFault.Text, m.Action), Data: data}
}

// Repair returns msgs as a valid transcript, with the smallest possible change, and the list of
// repairs. It does not change texts:
//
//   - An unanswered call of a reply before the last gets an error result that says so. Calls of the
//     last reply stay open.
//   - Results move right behind their reply, in the order of its calls. This applies to results
//     anywhere after the reply.
//   - A result without a call before it is dropped, and so is a second result for a call, a part
//     that its message cannot hold, a decision, and a message without parts. A reply without parts
//     stays, because the keys of a run count it.
//   - A call without an id, or with the id of another call in its reply, gets an id of its own, and
//     its result gets the same id.
//
// If there is a fault without a repair (unknown_role, unknown_part), Repair repairs nothing. It
// returns a transcript without faults unchanged. It never changes msgs; the result shares unchanged
// parts with them.
func Repair(msgs []Message) (repaired []Message, repairs []Repaired) {
	return HistoryRules{}.Repair(msgs)
}

// Repair is the function Repair with the rules of an API. With Settled, it answers the open calls
// of the last reply like all others. With UserFirst, it puts a message in front that says what is
// missing. It drops reasoning that cannot end a reply.
func (r HistoryRules) Repair(msgs []Message) (repaired []Message, repairs []Repaired) {
	if r.sound(msgs) {
		return msgs, nil
	}
	repaired, repairs, lost := r.repair(msgs)
	if len(lost) > 0 {
		return msgs, nil
	}
	return repaired, repairs
}

const (
	notRecorded = "No result was recorded: the run was interrupted. " +
		"The call may or may not have been executed; look before you send it again."
	notFromStart  = "What was said before this is not recorded."
	droppedPart   = "the part is dropped"
	droppedResult = "the result is dropped"
)

// repairing is one pass over messages that have a fault.
type repairing struct {
	rules     HistoryRules
	remaining []remainingMessage
	calls     map[string]*sameID // by the original id; the calls of the latest reply with that id
	repairs   []Repaired
	lost      []HistoryFault // without a repair
}

// remainingMessage is a message that is not dropped.
type remainingMessage struct {
	Message
	at      int    // the original index
	results []Part // one for each call of a reply; nil means none yet
	ids     []string
	order   int  // the index of the call of the last result in place
	mixed   bool // the results in place are out of order
}

// sameID holds the calls of a reply that have one id.
type sameID struct {
	reply  int
	places []int // indexes of the calls in the reply
	next   int   // index in places of the call that gets the next result
}

func (r HistoryRules) repair(msgs []Message) ([]Message, []Repaired, []HistoryFault) {
	h := &repairing{rules: r, remaining: make([]remainingMessage, 0, len(msgs)), calls: map[string]*sameID{}}
	for i, m := range msgs {
		h.keep(i, m)
	}
	for k := range h.remaining {
		h.pair(k)
	}
	out := h.joined()
	slices.SortStableFunc(h.repairs, func(a, b Repaired) int { return cmp.Compare(a.Message, b.Message) })
	return out, h.repairs, h.lost
}

func sortFaults(faults []HistoryFault) {
	slices.SortStableFunc(faults, func(a, b HistoryFault) int { return cmp.Compare(a.Message, b.Message) })
}

func (h *repairing) did(f HistoryFault, did string) { h.repairs = append(h.repairs, Repaired{f, did}) }

// keep stores message i without the parts that it cannot hold. Results stay for now in a message of
// any role: pair moves them to their calls.
func (h *repairing) keep(i int, m Message) {
	switch m.Role {
	case RoleSystem, RoleDeveloper, RoleUser, RoleAssistant, RoleTool:
	default:
		fault := newFault("unknown_role", i, -1, "unknown role %q; known: system, developer, user, assistant, tool", m.Role)
		h.lost = append(h.lost, fault)
		return
	}

	parts := make([]Part, 0, len(m.Parts))
	for j, p := range m.Parts {
		result, isResult := p.(ToolResult)
		_, isDecision := p.(Decision)
		switch {
		case !known(p):
			h.lost = append(h.lost, newFault("unknown_part", i, j, "a part is nil or of an unknown type (%T)", p))
		case isDecision:
			h.did(newFault("misplaced_part", i, j, "a transcript cannot hold a decision"), droppedPart)
		case isResult:
			parts = append(parts, h.plain(i, j, result))
		default:
			if err := allowed(m.Role, p); err != nil {
				h.did(newFault("misplaced_part", i, j, "%v", err), droppedPart)
				continue
			}
			parts = append(parts, p)
		}
	}

	if len(m.Parts) == 0 && m.Role != RoleAssistant {
		h.did(newFault("empty_message", i, -1, "the message is empty"), "the message is dropped")
	}
	m.Parts = parts
	if len(m.Parts) > 0 || m.Role == RoleAssistant {
		h.remaining = append(h.remaining, remainingMessage{Message: m, at: i, order: -1})
	}
}

// plain returns a result without the parts that it cannot hold.
func (h *repairing) plain(i, j int, r ToolResult) ToolResult {
	var parts []Part
	for n, p := range r.Parts {
		switch p.(type) {
		case Text, Media:
			parts = append(parts, p)
		default:
			if !known(p) {
				fault := newFault("unknown_part", i, j, "part %d of a result is nil or of an unknown type (%T)", n, p)
				h.lost = append(h.lost, fault)
				continue
			}
			h.did(newFault("misplaced_part", i, j, "a result cannot hold %s", partName(p)), droppedPart)
		}
	}
	if len(parts) < len(r.Parts) {
		r.Parts = parts
	}
	return r
}

// pair records the calls of message k, and moves its results to their calls.
func (h *repairing) pair(k int) {
	m := &h.remaining[k]
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
func (h *repairing) name(k int) {
	m := &h.remaining[k]
	taken := map[string]bool{}
	for _, p := range m.Parts {
		if c, ok := p.(ToolCall); ok {
			taken[c.ID] = true
		}
	}

	tried := map[string]int{} // by the original id, so that many equal ids cost one pass
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
			was := c.ID
			var n int
			c.ID, n = freeID(was, tried[was], taken)
			tried[was] = n
			taken[c.ID] = true
			m.Parts[j] = c

			fault := newFault("call_id", m.at, -1,
				"call id %q is empty or there twice; each call of a reply needs its own", was)
			h.did(fault, "the call is now "+c.ID)
		}
		same.places = append(same.places, len(m.ids))
		m.ids = append(m.ids, c.ID)
	}
	m.results = make([]Part, len(m.ids))
}

// freeID returns the first id of the form was_N that is not taken, and its N, which is over tried.
func freeID(was string, tried int, taken map[string]bool) (id string, n int) {
	base := cmp.Or(was, "call")
	for n = tried + 1; ; n++ {
		id = base + "_" + strconv.Itoa(n)
		if !taken[id] {
			return id, n
		}
	}
}

// answer moves a result in message k to the call with that id in the latest reply before it. A
// result before its call answers nothing: some providers restart ids with each reply, so it may
// belong to another call.
func (h *repairing) answer(k int, r ToolResult) {
	m := &h.remaining[k]
	same := h.calls[r.CallID]
	switch {
	case same == nil:
		h.did(newFault("no_call", m.at, -1, "the result for call %q answers no call before it", r.CallID), droppedResult)
		return
	case same.next == len(same.places):
		h.did(newFault("second_result", m.at, -1, "call %q has a result already", r.CallID), droppedResult)
		return
	}

	place := same.places[same.next]
	same.next++
	reply := &h.remaining[same.reply]
	r.CallID = reply.ids[place]
	reply.results[place] = r

	switch {
	case k != same.reply+1 || m.Role != RoleTool:
		fault := newFault("misplaced_result", m.at, -1,
			"the result for call %q does not stand right behind its reply", r.CallID)
		h.did(fault, "it is moved there, behind message "+strconv.Itoa(reply.at))
	case place < reply.order:
		reply.mixed = true
	default:
		reply.order = place
	}
}

// joined returns the transcript made from the messages that are not dropped.
func (h *repairing) joined() []Message {
	// Only the calls of the last reply may still be executed, so that they alone can stay open.
	last := len(h.remaining) - 1
	for last >= 0 && h.remaining[last].Role != RoleAssistant {
		last--
	}

	out := make([]Message, 0, len(h.remaining)+2)
	begun := !h.rules.UserFirst
	for k := range h.remaining {
		m := &h.remaining[k]

		// pair has moved the results to their calls, with which they are written.
		if m.Role == RoleTool || len(m.Parts) == 0 && m.Role != RoleAssistant {
			continue
		}

		if !begun && begins(&m.Message) {
			begun = true
			if m.Role != RoleUser {
				fault := newFault("start", m.at, -1, "the API wants the user to speak first")
				h.did(fault, "a message that says what is missing is put in front")
				out = append(out, User(notFromStart))
			}
		}

		if m.Role == RoleAssistant {
			n := len(m.Parts)
			m.Parts = m.Parts[:h.rules.cutBefore(&m.Message)]
			if len(m.Parts) < n {
				fault := newFault("reply_end", m.at, len(m.Parts), "the API takes no reply that ends with reasoning")
				h.did(fault, "the reasoning is dropped")
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
func (h *repairing) resultsOf(m *remainingMessage, open bool) []Part {
	if m.mixed {
		fault := newFault("result_order", m.at, -1, "the results behind the reply are not in the order of its calls")
		h.did(fault, "they are put in order")
	}
	results := m.results[:0]
	for place, p := range m.results {
		if p == nil && !open {
			r := ErrorResult(notRecorded)
			r.CallID = m.ids[place]
			p = r
			h.did(newFault("no_result", m.at, -1, "call %q has no result", r.CallID), "it is answered with an error that says so")
		}
		if p != nil {
			results = append(results, p)
		}
	}
	return results
}

// RepairRequest returns req with repaired messages, and the list of repairs. It returns req itself
// if there is no fault. Models call it with the request of Stream before they send it.
func (r HistoryRules) RepairRequest(req *Request) (*Request, []Repaired) {
	repaired, repairs := r.Repair(req.Messages)
	if len(repairs) == 0 {
		return req, nil
	}
	sent := *req
	sent.Messages = repaired
	return &sent, repairs
}
