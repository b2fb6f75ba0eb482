package hostile

import (
	"strings"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

const (
	chat      = pawltest.Chat
	responses = pawltest.Responses
	anthropic = pawltest.Anthropic
	gemini    = pawltest.Gemini
)

// The functions that build rows.

// meets splits the ids of demands.
func meets(s string) []string { return strings.Fields(s) }

// calls returns a reply that makes calls, each written as "NAME ARGUMENTS".
func calls(texts ...string) Turn {
	var t Turn
	for _, s := range texts {
		name, args, _ := strings.Cut(s, " ")
		t.Calls = append(t.Calls, Call{Name: name, Args: args})
	}
	return t
}

// call returns a reply with one call, whose name may contain spaces.
func call(name, args string) Turn { return Turn{Calls: []Call{{Name: name, Args: args}}} }

func (t Turn) with(w Wire) Turn                 { t.Wire = w; return t }
func (t Turn) ending(f llm.FinishReason) Turn   { t.Finish = f; return t }
func (t Turn) again() Turn                      { t.Often = true; return t }
func (t Turn) saying(text string) Turn          { t.Text = text; return t }
func (t Turn) using(u llm.Usage) Turn           { t.Usage = &u; return t }
func turns(all ...Turn) []Turn                  { return all }
func say(text string) Turn                      { return Turn{Text: text} }
func shown(all ...Shown) Want                   { return Want{Results: all} }
func (w Want) stops(s string) Want              { w.Stop = s; return w }
func (w Want) after(least, most int) Want       { w.Requests = [2]int{least, most}; return w }
func ran(call string) Shown                     { return Shown{Ran: call} }
func says(words ...string) Shown                { return Shown{Says: words} }
func (s Shown) or(words ...string) Shown        { s.Or = words; return s }
func (s Shown) times(n int) Shown               { s.Times = n; return s }
func (s Shown) says(words ...string) Shown      { s.Says = words; return s }
func failed(call string, words ...string) Shown { return Shown{Ran: call, Fails: true, Says: words} }
func lost(call string, words ...string) Shown   { return Shown{Ran: call, Mute: true, Says: words} }

// decided returns a turn that depends on the request.
func decided(does string, make func(req *llm.Request) Turn) Turn {
	return Turn{Does: does, make: make}
}

const (
	oslo   = `{"city":"Oslo"}`
	inOslo = "weather " + oslo
)

// inBergen and both are a second call, and two in one reply.
const inBergen = `weather {"city":"Bergen"}`

func both() []Shown { return []Shown{ran(inOslo), ran(inBergen)} }
