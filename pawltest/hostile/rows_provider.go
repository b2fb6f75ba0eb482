package hostile

import (
	"encoding/json"

	"github.com/pawl-go/pawl/pawltest"
)

// providers: servers that answer with something other than a reply.
func providers() []Behaviour {
	ok := func(requests int) Want { return Want{Results: []Shown{ran(inOslo)}, Requests: [2]int{2, requests}} }
	no := func(most int) Want { return Want{Loose: true, Stop: "failed", Requests: [2]int{1, most}} }
	row := func(id, title, ids string, w Wire, want Want, only ...string) Behaviour {
		return Behaviour{ID: id, Title: title, Meets: meets(ids), Turns: turns(calls(inOslo).with(w)),
			Only: only, Want: want}
	}
	limited := func(says, after string) Wire {
		return wire(says, pawltest.Fault{Status: 429, RetryAfter: after}).times(1)
	}
	return []Behaviour{
		row("http-429", "is asked too often, and says when to come back", "OA-D54",
			limited("429 with Retry-After: 1", "1"),
			ok(3),
		),
		row("http-429-date", "is asked too often, and says when to come back as a date", "IA-T71",
			limited("429 with a date as Retry-After", "Sun, 06 Nov 1994 08:49:37 GMT"),
			ok(3),
		),
		row("http-429-tomorrow", "is asked too often, and wants to be left alone for a day", "IA-T71",
			limited("429 with Retry-After: 86400", "86400"),
			Want{Loose: true, Results: []Shown{ran(inOslo)}, Stop: "failed|answer", Requests: [2]int{1, 3}},
		),
		row("http-500-twice", "fails twice, then works", "OA-D54 IA-T70", status(500, "500, twice").times(2), ok(4)),
		row("http-503", "is overloaded once", "OA-D54 IA-T71", status(503, "503, once").times(1), ok(3)),
		row("http-529", "is overloaded once, in Anthropic's number", "IA-T71",
			status(529, "529, once").times(1),
			ok(3),
			anthropic,
		),
		row("http-408", "times out once", "IA-T72", status(408, "408, once").times(1), ok(3)),
		row("http-500-for-ever", "fails for ever", "OA-D54", status(500, "500, each time"), no(6)),
		row("http-401", "does not know the key", "OA-D54 IA-T21", status(401, "401"), no(1)),
		row("http-400", "does not like the request", "OA-D54", status(400, "400"), no(1)),
		row("http-502-html", "is hidden behind a gateway that answers a page once", "OA-D54",
			page(502, "502 with a page of HTML, once").times(1),
			ok(3),
		),
		row("http-200-html", "is hidden behind a page that wants a log-in", "OA-D54",
			wire("status 200 with a page of HTML", pawltest.Fault{Body: []byte("<!DOCTYPE html><html><body>Please log in</body></html>"), ContentType: "text/html"}),
			no(4),
		),
		row("http-empty-body", "answers with nothing", "OA-D54",
			wire("status 200 with an empty body", pawltest.Fault{Body: []byte{}}),
			no(4),
		),
		row("http-bare-error", "fails with an empty body", "OA-D54",
			wire("status 500 with an empty body, once", pawltest.Fault{Status: 500, Body: []byte{}}).times(1),
			ok(3),
		),
		row("http-redirect", "sends the client elsewhere", "OA-D54 IA-T21",
			wire("302 to another host", pawltest.Fault{Status: 302, Body: []byte("<html><title>Moved</title></html>"), ContentType: "text/html", Header: map[string]string{"Location": "http://192.0.2.1/stolen"}}),
			no(1),
		),
		row("http-wrong-content-type", "calls its answer plain text", "OA-D54",
			wire("Content-Type: text/plain", pawltest.Fault{ContentType: "text/plain"}),
			ok(2),
		),
		row("http-reset", "breaks the connection before it answers, once", "OA-D54",
			wire("the connection breaks before the answer", pawltest.Fault{Break: true, Cut: 0.000001}).times(1),
			ok(3),
		),
		{
			ID:    "http-500-after-results",
			Title: "fails when it is given the results",
			Meets: meets("D12 IA-T70 OA-D54"),
			Turns: turns(calls(inOslo), say("It rains.").with(status(500, "500, twice").times(2))),
			Want:  Want{Results: []Shown{ran(inOslo)}, Requests: [2]int{3, 4}},
		},
		{
			ID:    "http-400-after-results",
			Title: "refuses the request that brings the results",
			Meets: meets("D6 OA-D59"),
			Turns: turns(calls(inOslo), say("It rains.").with(status(400, "400"))),
			Want:  Want{Results: []Shown{ran(inOslo)}, Stop: "failed", Requests: [2]int{2, 2}},
		},
		row("usage-absent", "does not say what a reply cost", "IA-T73",
			objects("there is no usage", func(_ *answer, o map[string]any, _ bool) { dropUsage(o) }),
			ok(2),
		),
		row("usage-null", "says null of what a reply cost", "IA-T73",
			objects("usage is null", func(_ *answer, o map[string]any, _ bool) { setUsage(o, nil) }),
			ok(2),
		),
		row("usage-absurd", "says absurd things of what a reply cost", "IA-T73 IA-T74 D24",
			objects("figures are negative", func(_ *answer, o map[string]any, _ bool) { setUsageFigures(o, -5) }),
			ok(2),
		),
		row("usage-words", "says in words what a reply cost", "IA-T73",
			objects("figures are strings", func(_ *answer, o map[string]any, _ bool) { setUsageFigures(o, "many") }),
			ok(2),
		),
	}
}

func usages(o map[string]any, f func(holder map[string]any, key string)) {
	for _, key := range []string{"usage", "usageMetadata"} {
		if _, ok := o[key]; ok {
			f(o, key)
		}
	}
	for _, key := range []string{"response", "message"} {
		if inner, ok := o[key].(map[string]any); ok {
			usages(inner, f)
		}
	}
}

func dropUsage(o map[string]any)       { usages(o, func(h map[string]any, key string) { delete(h, key) }) }
func setUsage(o map[string]any, v any) { usages(o, func(h map[string]any, key string) { h[key] = v }) }

func setUsageFigures(o map[string]any, v any) {
	usages(o, func(h map[string]any, key string) {
		figures, _ := h[key].(map[string]any)
		for k, old := range figures {
			if _, ok := old.(json.Number); ok {
				figures[k] = v
			}
		}
	})
}
