package hostile

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl/pawltest"
)

// ids: calls with wrong ids or wrong places.
func ids() []Behaviour {
	two := calls(inOslo, inBergen)
	setID := func(says string, id func(n int, old string) any) Wire {
		return Wire{Says: says, fault: func(at place) *pawltest.Fault {
			n := -1
			seen := map[string]int{}
			w := callObjects(says, func(a *answer, c map[string]any, first bool) {
				key := idKey(a.api)
				old, has := c[key].(string)
				if !has {
					return
				}
				if _, ok := seen[old]; !ok {
					n++
					seen[old] = n
				}
				if v := id(seen[old], old); v == nil {
					delete(c, key)
				} else {
					c[key] = v
				}
			})
			return w.fault(at)
		}}
	}
	chatChunks := func(says string, f func(n int, call map[string]any, first bool)) Wire {
		return Wire{Says: says, fault: func(at place) *pawltest.Fault {
			n := -1
			return callObjects(says, func(a *answer, c map[string]any, first bool) {
				if first {
					n++
				}
				f(n, c, first)
			}).fault(at)
		}}
	}
	row := func(id, title, ids string, w Wire, only ...string) Behaviour {
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Turns: turns(two.with(w)), Only: only,
			Want: shown(both()...)}
	}
	named := func(id string) Turn {
		return Turn{Calls: []Call{{ID: id, Name: "weather", Args: oslo}}}
	}
	stream := "openai-chat/stream"
	return []Behaviour{
		row("id-missing", "gives its calls no ids", "D14 D16 IA-T69",
			setID("calls have no id", func(int, string) any { return nil }),
		),
		row("id-empty", "gives its calls empty ids", "D16 IA-T69",
			setID("calls have the id \"\"", func(int, string) any { return "" }),
		),
		row("id-null", "gives its calls null as ids", "D16", edited("calls have null as their id", func(a *answer) {
			o := func(m map[string]any) {
				eachCall(a.api, m, func(c map[string]any, _ bool) {
					if _, ok := c[idKey(a.api)]; ok {
						c[idKey(a.api)] = nil
					}
				})
			}
			if m, ok := a.body.(map[string]any); ok {
				o(m)
			}
			for _, e := range a.events {
				o(e.object)
			}
		})),
		{
			ID:    "id-duplicate",
			Title: "gives two calls the same id",
			Meets: meets("D16 IA-T69 D20"),
			Turns: turns(two.with(setID("both calls have the id \"call\"", func(int, string) any { return "call" }))),
			Only:  []string{chat, responses, anthropic, gemini},
			Want:  Want{Results: both(), Loose: true, Stop: "answer|failed", Requests: [2]int{1, 4}},
		},
		row("id-long", "gives its calls ids of 1,000 letters", "D16",
			setID("ids are 1,000 letters long, and differ at the end", func(n int, _ string) any { return strings.Repeat("x", 1000) + fmt.Sprint(n) }),
		),
		row("id-odd", "gives its calls ids with odd characters", "D16",
			setID("ids are \"call:1/é 0\" and so on", func(n int, _ string) any { return fmt.Sprintf("call:1/é %d", n) }),
		),
		row("id-number", "gives its calls numbers as ids", "D16",
			setID("ids are numbers", func(n int, _ string) any { return n }),
			"openai-chat",
		),
		row("id-is-name", "gives its calls the tool's name as their id", "D16 IA-T69",
			setID("both calls have the id \"weather\"", func(int, string) any { return "weather" }),
		),
		{
			ID:    "id-repeated-turns",
			Title: "gives a call of each turn the same id",
			Meets: meets("D16 OA-D3"),
			Turns: turns(named("call_1"), named("call_1"), named("call_1")),
			Want: Want{Results: []Shown{ran(inOslo), ran(inOslo), {
				Ran:  inOslo,
				Or:   []string{"weather|before|again"},
				Mute: true,
			}}},
		},
		row("id-late", "gives the ids only with the last fragment", "D14", chatLate(), stream),
		row("id-every-chunk", "repeats the id with every fragment", "D14 IA-T69",
			chatRepeat("the id is repeated", "id"),
			stream,
		),
		row("name-every-chunk", "repeats the name with every fragment", "D14 IA-T67",
			chatRepeat("the name is repeated", "name"),
			stream,
		),
		row("id-new-every-chunk", "gives a new id with every fragment", "D14", chatFresh(), stream),
		row("index-missing", "leaves out which call a fragment belongs to", "D14 IA-T69",
			chatChunks("fragments have no index", func(_ int, c map[string]any, _ bool) { delete(c, "index") }),
			stream,
		),
		row("index-same", "gives both calls the same place", "D14 IA-T69",
			chatChunks("both calls have the index 0", func(_ int, c map[string]any, _ bool) { c["index"] = 0 }),
			stream,
		),
		row("index-huge", "counts its calls from 1,000,000", "D14",
			chatChunks("indexes begin at 1,000,000", func(n int, c map[string]any, _ bool) { c["index"] = 1_000_000 + n }),
			stream,
		),
		row("index-reversed", "counts its calls backwards", "D14",
			chatChunks("the first call has the index 1, the second 0", func(n int, c map[string]any, _ bool) { c["index"] = 1 - n }),
			stream,
		),
		row("calls-interleaved", "writes two calls at the same time, a fragment of each in turn", "D14 IA-T69",
			edited("fragments of the two calls come in turn", interleave),
			stream,
		),
		{
			ID:    "args-whole-then-again",
			Title: "writes all arguments, and then all of them again",
			Meets: meets("D14"),
			Turns: turns(two.with(chatAgain())),
			Only:  []string{stream},
			Want:  Want{Loose: true, Results: both(), Stop: "answer|failed", Requests: [2]int{1, 4}},
		},
		row("args-as-object", "sends the arguments as an object in place of a string", "D14",
			callObjects("arguments are an object", func(_ *answer, c map[string]any, _ bool) {
				if f, ok := c["function"].(map[string]any); ok {
					f["arguments"] = json.RawMessage(fmt.Sprint(f["arguments"]))
				}
			}),
			"openai-chat/whole",
		),
	}
}

// chatRepeat repeats the id or the name of a call in all of its fragments.
func chatRepeat(says, what string) Wire {
	return edited(says, func(a *answer) {
		ids := map[string]any{}
		names := map[string]any{}
		for _, e := range a.events {
			eachCall(a.api, e.object, func(c map[string]any, first bool) {
				at := fmt.Sprint(c["index"])
				f, _ := c["function"].(map[string]any)
				if first {
					ids[at] = c["id"]
					names[at] = f["name"]
				}
				if what == "id" {
					c["id"] = ids[at]
				} else {
					f["name"] = names[at]
				}
			})
		}
	})
}

// chatFresh gives each fragment an id of its own.
func chatFresh() Wire {
	return edited("every fragment has another id", func(a *answer) {
		n := 0
		for _, e := range a.events {
			eachCall(a.api, e.object, func(c map[string]any, _ bool) {
				c["id"] = fmt.Sprintf("chunk_%d", n)
				n++
			})
		}
	})
}

// chatLate moves the id of a call to its last fragment.
func chatLate() Wire {
	return edited("the id comes with the last fragment", func(a *answer) {
		ids := map[string]any{}
		last := map[string]map[string]any{}
		for _, e := range a.events {
			eachCall(a.api, e.object, func(c map[string]any, first bool) {
				at := fmt.Sprint(c["index"])
				if first {
					ids[at] = c["id"]
					delete(c, "id")
				}
				last[at] = c
			})
		}
		for at, c := range last {
			c["id"] = ids[at]
		}
	})
}

// chatAgain sends the whole of a call again after its fragments, as some servers do at the end.
func chatAgain() Wire {
	return edited("the last fragment of a call repeats all of it", func(a *answer) {
		args := map[string]string{}
		heads := map[string]map[string]any{}
		var out []sent
		var order []string
		for _, e := range a.events {
			has := false
			eachCall(a.api, e.object, func(c map[string]any, first bool) {
				has = true
				at := fmt.Sprint(c["index"])
				f := c["function"].(map[string]any)
				if first {
					order = append(order, at)
					heads[at] = map[string]any{"index": c["index"], "id": c["id"], "type": "function", "function": map[string]any{"name": f["name"]}}
				}
				s, _ := f["arguments"].(string)
				args[at] += s
			})
			if !has && len(order) > 0 && e.object != nil { // the end
				for _, at := range order {
					heads[at]["function"].(map[string]any)["arguments"] = args[at]
					out = append(out, sent{object: map[string]any{"id": "chatcmpl-again", "object": "chat.completion.chunk", "created": 1, "model": "m",
						"choices": []any{map[string]any{"index": 0, "delta": map[string]any{"tool_calls": []any{heads[at]}}, "finish_reason": nil}}}})
				}
				order = nil
			}
			out = append(out, e)
		}
		a.events = out
	})
}

// interleave sorts the fragments of two calls so that they alternate.
func interleave(a *answer) {
	var head, tail []sent
	lanes := map[string][]sent{}
	var order []string
	for _, e := range a.events {
		at := ""
		eachCall(a.api, e.object, func(c map[string]any, _ bool) { at = fmt.Sprint(c["index"]) })
		switch {
		case at != "":
			if lanes[at] == nil {
				order = append(order, at)
			}
			lanes[at] = append(lanes[at], e)
		case len(order) == 0:
			head = append(head, e)
		default:
			tail = append(tail, e)
		}
	}
	for more := true; more; {
		more = false
		for _, at := range order {
			if l := lanes[at]; len(l) > 0 {
				head, lanes[at], more = append(head, l[0]), l[1:], true
			}
		}
	}
	a.events = append(head, tail...)
}
