package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/gotypes"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/client"
	"github.com/pawl-go/pawl/store"
)

// remote are the runs of a server, over HTTP and in its process.
type remote map[string]func(id, agent string) pawl.OutputRunner

// remotes serves agents. Both ways have runs of their own.
func remotes(t *testing.T, agents ...*pawl.Agent) remote {
	t.Helper()
	over, in := newServer(t, agents), newServer(t, agents)
	h := httptest.NewServer(over)
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); h.Close() })
	c := client.New(h.URL, &client.Options{HTTP: transport, Pause: time.Millisecond})
	return remote{
		"over HTTP":      func(id, agent string) pawl.OutputRunner { return c.Runner(id, agent) },
		"in the process": func(id, agent string) pawl.OutputRunner { return in.Runner(server.RunnerOptions{ID: id, Agent: agent}) },
	}
}

func newServer(t *testing.T, agents []*pawl.Agent) *server.Server {
	t.Helper()
	s, err := server.New(agents, new(store.MemoryJournal), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

// An answer that breaks each Go type is sent back, and the next is the value. A second Into asks
// nothing.
func TestIntoOfGoTypes(t *testing.T) {
	r := rand.New(rand.NewPCG(17, 18))
	samples := gotypes.All()
	agents := make([]*pawl.Agent, len(samples))
	models := make([]*script.Model, len(samples))
	rights := make([][]byte, len(samples))
	for i, s := range samples {
		rights[i] = s.Random(r)
		models[i] = script.New(script.Say(`{"v":`), script.Say(s.Refused()[0]), script.Say(string(rights[i])))
		agents[i] = &pawl.Agent{Name: fmt.Sprint("a", i), Model: models[i]}
	}

	for way, runner := range remotes(t, agents...) {
		for i, s := range samples {
			before := len(models[i].Requests())
			for range 2 {
				got, _, err := s.Into(t.Context(), runner(fmt.Sprint("r", i), agents[i].Name), "go")
				if err != nil || !bytes.Equal(got, rights[i]) {
					t.Errorf("%s, %s: got %s, %v; want %s", way, s.Name, got, err, rights[i])
				}
			}
			if n := len(models[i].Requests()) - before; n != 3 {
				t.Errorf("%s, %s: %d requests", way, s.Name, n)
			}
		}
	}
}

// span has a check that the server does not have, and a text that it cannot read.
type span struct {
	From int   `json:"from"`
	To   int   `json:"to"`
	Unit scale `json:"unit"`
}

func (s span) Validate() error {
	if s.To < s.From {
		return errors.New("to must not be less than from")
	}
	return nil
}

// scale reads only "metre" and "foot", which its schema does not say.
type scale string

func (s *scale) UnmarshalText(b []byte) error {
	if string(b) != "metre" && string(b) != "foot" {
		return fmt.Errorf("unit %q is not known; use metre or foot", b)
	}
	*s = scale(b)
	return nil
}

func (s scale) MarshalText() ([]byte, error) { return []byte(s), nil }

// What only the program can check goes back to the model, in a run that continues the first one.
// The model reads the whole conversation, and the usage is the sum. All runs are found again.
func TestIntoChecksTheType(t *testing.T) {
	turns := []script.Turn{
		script.Say(`{"from":"x"}`), // the server finds this fault itself
		script.Say(`{"from":2,"to":1,"unit":"metre"}`),
		script.Say(`{"from":1,"to":2,"unit":"mile"}`),
		script.Say(`{"from":1,"to":2,"unit":"foot"}`),
	}
	for way := range remotes(t, &pawl.Agent{Name: "a", Model: script.New()}) {
		m := script.New(turns...)
		runner := remotes(t, &pawl.Agent{Name: "a", Model: m})[way]
		for range 2 {
			got, res, err := pawl.Into[span](t.Context(), runner("r", "a"), llm.User("go"))
			if err != nil || got != (span{1, 2, "foot"}) {
				t.Fatalf("%s: %+v, %v", way, got, err)
			}
			if res.Spent.Requests != 4 || len(m.Requests()) != 4 {
				t.Errorf("%s: %+v after %d requests", way, res.Spent, len(m.Requests()))
			}
		}

		last := m.Requests()[3]
		var said strings.Builder
		for _, msg := range last.Messages {
			said.WriteString(msg.Text() + "\n")
		}
		for _, part := range []string{"go", "to must not be less than from", `"mile" is not known; use metre or foot`} {
			if !strings.Contains(said.String(), part) {
				t.Errorf("%s: the last request has no %q:\n%s", way, part, said.String())
			}
		}
	}
}

// A run whose answers were all refused is asked again by the next start, and by the same id. Once
// it has an answer it asks no more.
func TestRefusedAnswersDoNotFreezeARun(t *testing.T) {
	wrong, right := `{"from":2,"to":1,"unit":"foot"}`, `{"from":1,"to":1,"unit":"foot"}`
	for way := range remotes(t, &pawl.Agent{Name: "a", Model: script.New()}) {
		turns := slices.Repeat([]script.Turn{script.Say(wrong)}, 7)
		m := script.New(append(turns, script.Say(right))...)
		runner := remotes(t, &pawl.Agent{Name: "a", Model: m})[way]
		requests := []int{}
		for n := range 5 {
			got, _, err := pawl.Into[span](t.Context(), runner("r", "a"), llm.User("go"))
			var unfit *pawl.OutputError
			if n < 3 && !errors.As(err, &unfit) || n >= 3 && (err != nil || got.To != 1) {
				t.Errorf("%s, start %d: %+v, %v", way, n, got, err)
			}
			requests = append(requests, len(m.Requests()))
		}
		if want := []int{3, 5, 7, 8, 8}; !slices.Equal(requests, want) {
			t.Errorf("%s: %v requests, want %v", way, requests, want)
		}
	}
}

// The error of a run whose answers do not fit the schema of its agent has them, for errors.As, as
// the error of the same run in the program has.
func TestUnfitAnswersAreErrors(t *testing.T) {
	a := &pawl.Agent{
		Name:   "a",
		Model:  script.New(script.Loop(script.Say(`{"from":"x"}`))),
		Output: pawl.SchemaFor[struct{ From int }](),
		Limits: pawl.Limits{Corrections: -1},
	}
	_, local := pawl.Run(t.Context(), a, llm.User("go"))
	var want *pawl.OutputError
	if !errors.As(local, &want) || len(want.Faults) == 0 {
		t.Fatalf("in the program: %v", local)
	}

	for way, runner := range remotes(t, a) {
		for range 2 { // the second reads what is stored
			res, err := pawl.Run(t.Context(), runner("r", "a"), llm.User("go"))
			var got *pawl.OutputError
			if !errors.As(err, &got) || got.Text != want.Text || !slices.Equal(got.Faults, want.Faults) ||
				got.Result != res {
				t.Errorf("%s: %v, %+v; want %+v", way, err, got, want)
			}
		}
	}
}

// A run that was started without the schema cannot be held to it any more.
func TestIntoOfAnotherRun(t *testing.T) {
	for way, runner := range remotes(t, &pawl.Agent{Name: "a", Model: script.New(script.Say("Free text."))}) {
		_, err := pawl.Collect(runner("r", "a").Stream(t.Context(), llm.User("go")), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = pawl.Into[span](t.Context(), runner("r", "a"), llm.User("go"))
		if err == nil || !strings.Contains(err.Error(), "was begun with another output") {
			t.Errorf("%s: %v", way, err)
		}
	}
}
