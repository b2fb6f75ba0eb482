package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/server/uistream"
)

// AG-UI's client in two versions, at its default settings: what it has at the end, how each request
// ends, and each payment once.
func TestAGUI(t *testing.T) {
	w := &world{gate: make(chan struct{}, 100)}
	v := serve(t, func(o *options) {
		o.Agents = []*pawl.Agent{uiAgent(w)}
	})
	front := http.NewServeMux()
	front.Handle("/", v.s)
	front.HandleFunc("POST /test/release", func(http.ResponseWriter, *http.Request) { w.gate <- struct{}{} })
	front.HandleFunc("GET /test/waits", func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, w.waits.Load()) })
	h := httptest.NewServer(front)
	defer h.Close()
	pay := func(n int, result string) string {
		return strings.TrimSuffix(fmt.Sprintf(`pay({"invoice":%d}) = %s`, n, result), " = ")
	}
	paid := func(n int) string { return pay(n, fmt.Sprintf("paid %d", n)) }
	const denied = "Denied: too much"
	const changed = `(Not run as you asked: the approver changed the arguments to {"invoice":60})` + "\npaid 60"
	for _, version := range []string{"1", "0"} {
		t.Run(version, func(t *testing.T) {
			w.paid.Store(0)
			got := node(t, "agui.mjs", h.URL, version)
			cancelled, ends := "error cancelled", ""
			helped := []string{`I call. | helper({"task":"help"}) = You said: help`, "Done: You said: help"}
			asked := []string{`I call. | payer({"task":"call pay 20"}) = Done: paid 20 | ` + paid(20), "Done: Done: paid 20"}
			if version == "1" { // older clients have no runs inside calls
				cancelled, ends = "cancelled", " STARTED FINISHED suspended STARTED FINISHED success"
				helped = slices.Insert(helped, 1, "You said: help")
				asked = []string{`I call. | payer({"task":"call pay 20"}) = Done: paid 20`, "I call. | " + paid(20), "Done: paid 20", "Done: Done: paid 20"}
			}
			for name, want := range map[string]struct {
				posts int
				ends  string
				shows []string
			}{
				"text":                            {1, "success", []string{"You said: hello"}},
				"reasoning":                       {1, "success", []string{"thinks:Let me see.", "Seen."}},
				"second message":                  {2, "success success", []string{"You said: one", "You said: two"}},
				"two tools, one fails":            {1, "success", []string{`I call. | look({"at":"Oslo"}) = found Oslo | fail({}) = error: it is broken`, "Done: found Oslo; it is broken"}},
				"question":                        {1, "interrupt", []string{"I call. | " + pay(1, "")}},
				"approve":                         {2, "interrupt success", []string{"I call. | " + paid(2), "Done: paid 2"}},
				"deny":                            {2, "interrupt success", []string{"I call. | " + pay(3, denied), "Done: " + denied}},
				"cancelled interrupt":             {2, "interrupt success", []string{"I call. | " + pay(3, "Denied: cancelled"), "Done: Denied: cancelled"}},
				"one yes, one no":                 {2, "interrupt success", []string{"I call. | " + paid(4) + " | " + pay(5, denied), "Done: paid 4; " + denied}},
				"edited":                          {2, "interrupt success", []string{"I call. | " + pay(6, changed), "Done: " + changed}},
				"asks twice":                      {3, "interrupt interrupt success", []string{"I call. | " + paid(7), "I call. | " + paid(8), "Done: paid 8"}},
				"call of an earlier id":           {2, "success success", []string{`I call. | look({"at":"a"}) = found a`, "Done: found a", `I call. | look({"at":"b"}) = found b`, "Done: found b"}},
				"no decision":                     {2, "interrupt interrupt", []string{"I call. | " + pay(9, "")}},
				"late yes":                        {3, "interrupt success success", []string{"I call. | " + paid(10), "Done: paid 10"}},
				"unknown interrupt":               {2, "interrupt success", []string{"I call. | " + paid(11), "Done: paid 11"}},
				"user writes instead":             {2, "success", []string{"I call. | " + pay(12, ""), "You said: hello"}},
				"answer and message":              {2, "interrupt success", []string{"I call. | " + paid(13), "You said: thanks"}},
				"tool of the agent for the page":  {2, "success success", []string{`I call. | ask({}) = blue`, "Done: blue"}},
				"tool of the page":                {2, "success success", []string{`I call. | locate({}) = {"city":"Rome"} | look({"at":"Oslo"}) = found Oslo`, `Done: {"city":"Rome"}; found Oslo`}},
				"tool of the page and a question": {2, "interrupt success", []string{`I call. | locate({}) = {"city":"Rome"} | ` + paid(14), `Done: {"city":"Rome"}; paid 14`}},
				"equal tool":                      {1, "", nil},
				"stop and attach":                 {2, "success", []string{"I call. | wait({}) = waited", "Done: waited"}},
				"attach at the end":               {2, "success", []string{"thinks:Let me see.", "Seen."}},
				"attach behind an answer":         {3, "success", []string{"I call. | " + paid(15), "Done: paid 15"}},
				"another message":                 {2, "", nil},
				"cancel":                          {1, cancelled, []string{"I call. | wait({}) = cancelled: context canceled"}},
				"gone client":                     {1, "error abort", []string{"I call. | wait({})"}},
				"context":                         {1, "success", []string{"The application states: page: the invoices"}},
				"agent as a tool":                 {1, "success", helped},
				"question of an inner agent":      {2, "interrupt success" + ends, asked},
				"failing model":                   {1, "error model_failed", nil},
				"failing model behind a write":    {2, "interrupt error model_failed", []string{"I call. | " + paid(16)}},
				"end behind a tool":               {1, "success", []string{"I call. | end({}) = over", "over"}},
				"progress":                        {1, "success", []string{"I call. | report({}) = reported", "Done: reported"}},
				"control":                         {0, "", nil},
			} {
				var c struct {
					Posts                          int
					Shows, Ends, Failures, Dropped []string
				}
				if err := json.Unmarshal(got[name], &c); err != nil {
					t.Errorf("%s: %v in %s", name, err, got[name])
					continue
				}
				shown := want.shows == nil || slices.Equal(c.Shows, want.shows)
				if c.Posts != want.posts || !shown || strings.Join(c.Ends, " ") != want.ends {
					t.Errorf("%s: got %d requests, %q and %q, want %d, %q and %q", name, c.Posts, c.Ends, c.Shows, want.posts, want.ends, want.shows)
				}
				must := map[string]string{"equal tool": "HTTP 400", "another message": "HTTP 409", "control": "still active"}
				text, fails := must[name]
				all := strings.Join(c.Failures, " ")
				if fails != (all != "") || !strings.Contains(all, text) || len(c.Dropped) > 0 && name != "control" {
					t.Errorf("%s: failures %q, dropped %q", name, c.Failures, c.Dropped)
				}
			}
			if s := string(got["protobuf"]); s != "406" {
				t.Errorf("protobuf: got %s", s)
			}
			if s := string(got["capabilities"]); !strings.Contains(s, `"approveWithEdits":true`) || !strings.Contains(s, `"name":"pay"`) {
				t.Errorf("capabilities: got %s", s)
			}
			// approve, mixed, edited, twice 2, late, unknown, both, page, behind, breaks, inner
			if n := w.paid.Load(); n != 12 {
				t.Errorf("%d payments, want 12", n)
			}
		})
	}
}

// If events are lost, repeated or shuffled, the client of each protocol accepts the stream: AG-UI's
// boundary and verifier, and the chunk schema and the reader of the AI SDK.
func TestClientsAcceptStreamsOfAnyEvents(t *testing.T) {
	var streams []stream
	var names []string
	for _, file := range []string{"asks", "goes_on"} {
		b, err := os.ReadFile(filepath.Join("uistream", "testdata", file+".jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		var all []pawl.Event
		for line := range bytes.Lines(b) {
			var e pawl.Event
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		for seed := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, 2))
			some := all
			if seed > 0 {
				some = nil
				for _, e := range all {
					if seed%3 == 0 && r.IntN(8) == 0 && e.Execution == nil {
						e.Run = "run/3/1/clerk"
					}
					for n := r.IntN(4); n > 0; n -= 2 {
						some = append(some, e)
					}
				}
			}
			if r.IntN(3) == 0 {
				r.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			}
			for _, p := range []uistream.Protocol{uistream.AISDK6, uistream.AISDK7, uistream.AGUI0, uistream.AGUI1} {
				o := streamOf(p)
				// the AI SDK has the calls in the message before
				if file == "goes_on" && o.Thread != "" {
					o.After, o.Open = 3, map[llm.Key]bool{"run/3/0": true, "run/3/1": false, "run/3/1/clerk/1/0": true}
				}
				streams, names = append(streams, framesOf(o, some)), append(names, fmt.Sprintf("%s, seed %d, %s", file, seed, p))
			}
		}
	}
	for _, p := range []uistream.Protocol{uistream.AGUI0, uistream.AGUI1} { // the controls
		streams = append(streams, stream{p, []json.RawMessage{[]byte(`{"type":"RUN_STARTED","threadId":"t","runId":"r"}`), []byte(`{"type":"TEXT_MESSAGE_CONTENT","messageId":"1","delta":"x"}`)}})
	}
	for _, p := range []uistream.Protocol{uistream.AISDK6, uistream.AISDK7} {
		streams = append(streams, stream{p, []json.RawMessage{[]byte(`{"type":"start"}`), []byte(`{"type":"text-delta","id":"1","delta":"x"}`)}})
	}
	said := verified(t, streams)
	faults := 0
	for i, fault := range said {
		control := i >= len(names)
		if control && fault == "" {
			t.Errorf("a delta without its start is not found in %s", streams[i].Protocol)
		} else if !control && fault != "" {
			if faults++; faults < 5 {
				t.Errorf("%s: %s", names[i], fault)
			}
		}
	}
	if faults > 0 {
		t.Errorf("%d of %d streams have a fault", faults, len(names))
	}
}

// stream is a stream of a protocol, for verify.mjs.
type stream struct {
	Protocol uistream.Protocol `json:"protocol"`
	Frames   []json.RawMessage `json:"frames"`
}

// streamOf returns the options of a stream.
func streamOf(p uistream.Protocol) uistream.Options {
	o := uistream.Options{Protocol: p, Run: "ui_x_y", Agent: "clerk", Passive: func(name string) bool { return name == "ask" }}
	if strings.HasPrefix(string(p), "ag-ui") {
		o.Thread, o.Request, o.Inner = "t", "r", true
	}
	return o
}

// framesOf encodes events.
func framesOf(o uistream.Options, events []pawl.Event) stream {
	e, s := uistream.New(o), stream{Protocol: o.Protocol}
	frames := e.Begin()
	for _, ev := range events {
		frames = append(frames, e.Event(ev)...)
	}
	for _, f := range append(frames, e.Fail("the events ended")...) {
		s.Frames = append(s.Frames, f)
	}
	return s
}

// verified returns the fault that the client of its protocol finds in each stream; "" means none.
func verified(t *testing.T, streams []stream) (said []string) {
	t.Helper()
	b, err := json.Marshal(streams)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "streams.json")
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(node(t, "verify.mjs", file)["said"], &said); err != nil || len(said) != len(streams) {
		t.Fatalf("%v: %d of %d streams were read", err, len(said), len(streams))
	}
	return said
}
