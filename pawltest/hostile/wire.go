package hostile

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/pawl-go/pawl/pawltest"
)

// Wire is a fault of a reply on its way, in words and as a fault of the simulator.
type Wire struct {
	Says  string `json:"says"`            // what goes wrong
	Times int    `json:"times,omitempty"` // for that many requests of the turn; 0 means for each

	fault func(at place) *pawltest.Fault
}

// place is the position of a fault.
type place struct {
	api    string
	stream bool
}

func (w Wire) times(n int) Wire {
	w.Times = n
	return w
}

// IsZero reports whether there is no fault.
func (w Wire) IsZero() bool { return w.fault == nil }

// wire is a fault that is the same for all APIs.
func wire(says string, f pawltest.Fault) Wire {
	return Wire{Says: says, fault: func(place) *pawltest.Fault { return &f }}
}

// status answers with an error.
func status(code int, says string) Wire { return wire(says, pawltest.Fault{Status: code}) }

// silent pauses for hold, before a whole answer or in the middle of a stream.
func silent(says string, d time.Duration, hold bool) Wire {
	return Wire{Says: says, fault: func(at place) *pawltest.Fault {
		c := make(chan struct{})
		if d > 0 {
			time.AfterFunc(d, func() { close(c) })
		}
		if hold || !at.stream {
			return &pawltest.Fault{Hold: c}
		}
		return &pawltest.Fault{Stall: c, After: 1}
	}}
}

// answer is the content of an answer on its way.
type answer struct {
	place
	events []sent // of a stream
	body   any    // of a whole reply
}

// sent is one event of a stream. Data that is not JSON has a nil object.
type sent struct {
	name   string
	data   string
	object map[string]any
}

// edited changes the JSON of an answer: f receives the whole of it.
func edited(says string, f func(a *answer)) Wire {
	return Wire{Says: says, fault: func(at place) *pawltest.Fault {
		return &pawltest.Fault{Rewrite: func(b []byte) []byte {
			a := parseAnswer(at, b)
			f(a)
			return a.bytes()
		}}
	}}
}

// objects changes every JSON object of an answer: each event, or the body. last means that it is
// the last object.
func objects(says string, f func(a *answer, o map[string]any, last bool)) Wire {
	return edited(says, func(a *answer) {
		if o, ok := a.body.(map[string]any); ok {
			f(a, o, true)
		}
		for i := range a.events {
			if o := a.events[i].object; o != nil {
				last := true
				for _, e := range a.events[i+1:] {
					last = last && e.object == nil
				}
				f(a, o, last)
			}
		}
	})
}

// callObjects changes every object of an answer that belongs to a call: the call itself, or a
// fragment. first is the object that begins it.
func callObjects(says string, f func(a *answer, call map[string]any, first bool)) Wire {
	return objects(says, func(a *answer, o map[string]any, _ bool) {
		eachCall(a.api, o, func(c map[string]any, first bool) { f(a, c, first) })
	})
}

// eachCall visits the objects of calls in an event or a body.
func eachCall(api string, o map[string]any, f func(call map[string]any, first bool)) {
	list := func(v any) []any {
		l, _ := v.([]any)
		return l
	}
	object := func(v any) map[string]any {
		m, _ := v.(map[string]any)
		return m
	}
	switch api {
	case pawltest.Chat:
		for _, c := range list(o["choices"]) {
			for _, key := range []string{"message", "delta"} {
				for _, call := range list(object(object(c)[key])["tool_calls"]) {
					_, has := object(object(call)["function"])["name"]
					f(object(call), has)
				}
			}
		}
	case pawltest.Responses:
		if item := object(o["item"]); item["type"] == "function_call" {
			f(item, o["type"] == "response.output_item.added")
		}
		for _, src := range []map[string]any{o, object(o["response"])} {
			for _, item := range list(src["output"]) {
				if object(item)["type"] == "function_call" {
					f(object(item), false)
				}
			}
		}
	case pawltest.Anthropic:
		if b := object(o["content_block"]); b["type"] == "tool_use" {
			f(b, true)
		}
		for _, b := range list(o["content"]) {
			if object(b)["type"] == "tool_use" {
				f(object(b), true)
			}
		}
	case pawltest.Gemini:
		for _, c := range list(o["candidates"]) {
			for _, p := range list(object(object(c)["content"])["parts"]) {
				if call := object(object(p)["functionCall"]); call != nil {
					f(call, true)
				}
			}
		}
	}
}

// idKey is the field of a call's id.
func idKey(api string) string {
	if api == pawltest.Responses {
		return "call_id"
	}
	return "id"
}

func parseAnswer(at place, b []byte) *answer {
	a := &answer{place: at}
	decode := func(text []byte) (any, bool) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		var v any
		err := d.Decode(&v)
		return v, err == nil
	}
	if !at.stream {
		a.body, _ = decode(b)
		return a
	}
	for block := range strings.SplitSeq(strings.ReplaceAll(string(b), "\r\n", "\n"), "\n\n") {
		var e sent
		for line := range strings.SplitSeq(block, "\n") {
			if name, ok := strings.CutPrefix(line, "event: "); ok {
				e.name = name
			} else if data, ok := strings.CutPrefix(line, "data: "); ok {
				e.data = data
			}
		}
		if e.data == "" {
			continue
		}
		if v, ok := decode([]byte(e.data)); ok {
			e.object, _ = v.(map[string]any)
		}
		a.events = append(a.events, e)
	}
	return a
}

func (a *answer) bytes() []byte {
	encode := func(v any) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if e.Encode(v) != nil {
			return "null"
		}
		return strings.TrimSpace(b.String())
	}
	if !a.stream {
		return []byte(encode(a.body))
	}
	var b bytes.Buffer
	for _, e := range a.events {
		if e.name != "" {
			b.WriteString("event: " + e.name + "\n")
		}
		if e.object != nil {
			e.data = encode(e.object)
		}
		b.WriteString("data: " + e.data + "\n\n")
	}
	return b.Bytes()
}

// bytewise changes the bytes of an answer.
func bytewise(says string, f func(at place, b []byte) []byte) Wire {
	return Wire{Says: says, fault: func(at place) *pawltest.Fault {
		return &pawltest.Fault{Rewrite: func(b []byte) []byte { return f(at, b) }}
	}}
}

// between writes text between the events of a stream.
func between(says, text string) Wire {
	return bytewise(says, func(_ place, b []byte) []byte {
		s := strings.ReplaceAll(string(b), "\r\n", "\n")
		return []byte(text + strings.ReplaceAll(s, "\n\n", "\n\n"+text))
	})
}

// cutAt breaks the connection after a fraction of the answer, from 0 to 1.
func cutAt(says string, part float64) Wire {
	return Wire{Says: says, fault: func(at place) *pawltest.Fault {
		return &pawltest.Fault{Break: true, Header: map[string]string{"Connection": "close"}, Cut: part}
	}}
}

// page answers like a web server that is not an API.
func page(code int, says string) Wire {
	return wire(says, pawltest.Fault{Status: code, Body: []byte("<!DOCTYPE html><html><head><title>" + http.StatusText(code) + "</title></head><body><h1>nginx</h1></body></html>"), ContentType: "text/html"})
}
