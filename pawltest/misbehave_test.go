package pawltest_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// everyFault lists the faults that a Simulator applies to a reply at each of its events, and the
// wires that can detect them. The outcome must be the same reply or a retryable error. On a wire
// without numbers, a repeated piece of text is part of the text. Then the reply must have no
// invented call with valid JSON as arguments.
var everyFault = []struct {
	name  string
	at    func(k int) *pawltest.Fault
	first int
	blind []string // the wires that cannot detect the fault
}{
	{"cut", func(k int) *pawltest.Fault { return &pawltest.Fault{Break: true, After: k} }, 0, nil},
	{"cut between bytes", func(k int) *pawltest.Fault { return &pawltest.Fault{Break: true, Bytes: 1 + 37*k} }, 0, nil},
	{"ended early", func(k int) *pawltest.Fault { return &pawltest.Fault{Raw: "\n", After: k} }, 0, nil},
	{"garbage for data", func(k int) *pawltest.Fault { return &pawltest.Fault{Insert: "data: {garbage\n\n", After: k} }, 0, nil},
	{"garbage between events", func(k int) *pawltest.Fault { return &pawltest.Fault{Insert: "<html>\n\n: ping\n\n", After: k} }, 0, nil},
	{"an event twice", func(k int) *pawltest.Fault { return &pawltest.Fault{Repeat: k} }, 1,
		[]string{pawltest.Chat, pawltest.Anthropic, pawltest.Gemini}},
	{"two events in turn", func(k int) *pawltest.Fault { return &pawltest.Fault{Swap: k} }, 1,
		[]string{pawltest.Chat, pawltest.Anthropic, pawltest.Gemini}},
}

// For any fault at any event of a stream, the outcome is the reply, or an error that reports the
// broken stream.
func TestEveryFaultAtEveryEvent(t *testing.T) {
	turn := script.Together(script.Think("Let me see both."), script.Say("I look at it."), script.Call("look", `{"at":"the sky"}`), script.Call("find", `{"at":"a cloud"}`))
	for _, w := range wires {
		ask := func(f *pawltest.Fault) (*llm.Response, error) {
			m, _ := w.on(t, script.New(turn), pawltest.SimulatorOptions{Fault: pawltest.Faults(f)})
			resp := new(llm.Response)
			for d, err := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("Go.")}}) {
				if err == nil {
					err = resp.Add(d)
				}
				if err != nil {
					return nil, err
				}
			}
			return resp, nil
		}
		right, err := ask(&pawltest.Fault{})
		if err != nil {
			t.Fatal(err)
		}
		said := func(r *llm.Response) string {
			return strings.Join(meaning([]llm.Message{r.Message}), "\n") + "\n" + string(r.Finish)
		}
		for _, f := range everyFault {
			blind := false
			for _, api := range f.blind {
				blind = blind || api == w.api
			}
			same, failed := 0, 0
			for k := f.first; k < 30; k++ {
				got, err := ask(f.at(k))
				var broken *llm.ProviderError
				switch {
				case err == nil && said(got) == said(right):
					same++
				case err == nil && !blind:
					t.Errorf("%s, %s at %d: it is taken for\n%s", w.name, f.name, k, said(got))
				case err == nil:
					inventsNone(t, w, f.name, k, got, right)
				case !errors.As(err, &broken) || !broken.Retryable || broken.Code != llm.CodeStream &&
					broken.Code != llm.CodeStreamInconsistent && broken.Code != llm.CodeNetwork &&
					broken.Code != llm.CodeTimeout:
					t.Errorf("%s, %s at %d: got error %v", w.name, f.name, k, err)
				default:
					failed++
				}
			}
			if same == 30-f.first && f.name != "garbage between events" && f.name != "an event twice" || failed == 0 && strings.HasPrefix(f.name, "cut") {
				t.Errorf("%s, %s: nothing went wrong, so the fault is none", w.name, f.name)
			}
		}
	}
}

// inventsNone checks that each call of got with valid JSON as arguments is a call of right.
// Gemini's calls are whole and have no numbers, so a repeated event repeats the call.
func inventsNone(t *testing.T, w wire, fault string, k int, got, right *llm.Response) {
	t.Helper()
	for _, c := range got.Message.Calls() {
		known := !json.Valid(c.Args) // such a call does not run; its result reports the fault
		for _, r := range right.Message.Calls() {
			known = known || c.Name == r.Name && canonical(c.Args) == canonical(r.Args)
		}
		if !known {
			t.Errorf("%s, %s at %d: a call of %s with %s is made up", w.name, fault, k, c.Name, c.Args)
		}
	}
}

// The client waits for a slow server, and retries after a transient failure: streamed and whole, on
// each wire.
func TestServersThatRecover(t *testing.T) {
	for _, w := range wires {
		for _, whole := range []bool{false, true} {
			gate := make(chan struct{})
			asked := make(chan struct{}, 1)
			fault := func(n int, _ *pawltest.Received) *pawltest.Fault {
				switch n {
				case 1:
					return &pawltest.Fault{Status: 503, RetryAfter: "0.01"}
				case 2:
					return &pawltest.Fault{Status: 500, Body: []byte("<html>oh"), ContentType: "text/html", RetryAfter: "0.01"}
				}
				asked <- struct{}{}
				return &pawltest.Fault{Hold: gate}
			}
			s := simulate(t, say("Here I am."), &pawltest.SimulatorOptions{Key: "test-key", Fault: fault})
			go func() { <-asked; close(gate) }()
			resp, retries := new(llm.Response), 0
			for d, err := range w.open(s.URL, transport(t), 2).Stream(t.Context(),
				&llm.Request{Messages: []llm.Message{llm.User("Go.")}, Whole: whole}) {
				if err == nil && d.Notice != nil && d.Notice.Code == "retry" {
					retries++
				}
				if err == nil {
					err = resp.Add(d)
				}
				if err != nil {
					t.Fatalf("%s, whole %t: %v", w.name, whole, err)
				}
			}
			if resp.Message.Text() != "Here I am." || retries != 2 {
				t.Errorf("%s, whole %t: got %q after %d retries", w.name, whole, resp.Message.Text(), retries)
			}
		}
	}
}
