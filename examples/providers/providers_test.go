package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/script"
)

// TestMain is also the program behind a pipe, which says what it has read.
func TestMain(m *testing.M) {
	if os.Getenv("PROVIDERS_PIPE") == "" {
		os.Exit(m.Run())
	}
	var messages []llm.Message
	if err := json.NewDecoder(os.Stdin).Decode(&messages); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Printf("%d messages, %d faults", len(messages), len(llm.Check(messages)))
}

// traveller is the model of every simulator: it thinks, asks for the weather and answers. Its Trip
// stops after the cities until hold is closed.
func traveller(req *llm.Request, hold <-chan struct{}) script.Turn {
	last := req.Messages[len(req.Messages)-1]
	switch {
	case strings.Contains(last.Text(), "Sum up"):
		trip := script.Say(`{"cities":["Oslo","Rome","Paris"],"advice":"Take an umbrella, and wear good shoes."}`)
		trip.Size, trip.Hold = 40, hold
		return trip
	case len(script.Results(req)) > 0:
		return script.Say("There is " + script.Results(req)[0].Text() + ".")
	}
	_, city, _ := strings.Cut(last.Text(), "in ")
	return script.Together(script.Think("I look up "+city+"."), script.Call("weather", lookup{city}))
}

// simulator starts a provider.
func simulator(t *testing.T, out *output, fault *pawltest.Fault) *pawltest.Simulator {
	reply := func(req *llm.Request) script.Turn { return traveller(req, out.formed) }
	faults := func(int, *pawltest.Received) *pawltest.Fault { return fault }
	model := script.New(script.Loop(script.Func(reply)))
	sim, err := pawltest.NewSimulator(model, &pawltest.SimulatorOptions{Fault: faults})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sim.Close() })
	return sim
}

// output is the standard output. formed is closed when it has the first value of the form.
type output struct {
	strings.Builder
	formed chan struct{}
}

func newOutput() *output { return &output{formed: make(chan struct{})} }

func (o *output) Write(p []byte) (int, error) {
	if had := strings.Contains(o.String(), "{Cities"); !had && strings.Contains(string(p), "{Cities") {
		close(o.formed)
	}
	return o.Builder.Write(p)
}

// keys sets the keys of all providers.
func keys(t *testing.T) {
	for _, name := range []string{"OPENAI", "ANTHROPIC", "GEMINI", "OLLAMA", "AZURE_OPENAI"} {
		t.Setenv(name+"_API_KEY", "none")
	}
}

// counted is the tool weather, and the cities that it was asked for.
func counted() (tool *pawl.Tool, cities *[]string) {
	cities = new([]string)
	return pawl.Func("weather", "Current weather in a city.", func(_ context.Context, in lookup) (string, error) {
		*cities = append(*cities, in.City)
		return "rain in " + in.City, nil
	}), cities
}

// One conversation moves over five providers and a program, and back to the first. Each simulator
// rejects a history that its provider would reject.
func TestConversation(t *testing.T) {
	keys(t)
	out := newOutput()
	t.Setenv("PROVIDERS_PIPE", "1")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"openai:gpt-6.1-terra", "anthropic:claude-sonnet-5-5", "gemini:gemini-3.8-flash", "ollama:qwen3:4b", "azure:gpt-5"}
	var sims []*pawltest.Simulator
	for i := range names {
		sims = append(sims, simulator(t, out, nil))
		names[i] += "=" + sims[i].URL
	}
	names[1] = strings.TrimSuffix(names[1], "/v1") // Anthropic's address ends before it
	names = append(names, "pipe:"+exe)
	places := []string{"Oslo", "Rome", "Paris", "Lima", "Bonn", "Kyiv", "Cork", "Bern", "Riga", "Graz", "Pisa", "Wien", "Nice"}
	tool, cities := counted()
	res, err := talk(t.Context(), names, tool, strings.NewReader("How is it in "+strings.Join(places, "\nHow is it in ")+"\n"), out)
	if err != nil {
		t.Fatal(err)
	}

	// Every provider answered its questions, with a call, but for the program, the sixth.
	program := []string{": 21 messages, 0 faults", ": 43 messages, 0 faults"}
	want := []string{"gpt-6.1-terra: ", "claude-sonnet-5-5: ", "gemini-3.8-flash: ", "qwen3:4b: ", "gpt-5: "}
	lines := strings.Split(out.String(), "\n")
	for i, place := range places {
		line := exe + program[i/6%2]
		if i%6 != 5 {
			line = want[i%6] + "There is rain in " + place + "."
		}
		if lines[i] != line {
			t.Errorf("line %d: got %q, want %q", i+1, lines[i], line)
		}
	}
	if w := slices.Concat(places[:5], places[6:11], places[12:]); !slices.Equal(*cities, w) {
		t.Errorf("the tool was asked for %q, want %q", *cities, w)
	}
	if faults := llm.Check(res.Messages); faults != nil {
		t.Errorf("the conversation is not valid: %v", faults)
	}
	// The first reasoning of a provider returns to it with its signature.
	for i, sim := range sims[:2] {
		log := sim.Received()
		first := signature(t, res.Messages, []string{"Oslo", "Rome"}[i])
		if last := log[len(log)-1]; !strings.Contains(string(last.Body), first) || first == "" {
			t.Errorf("%s did not get its signature %q back", names[i], first)
		}
		if other := sims[3].Received()[0]; strings.Contains(string(other.Body), first) {
			t.Errorf("another provider got the signature of %s", names[i])
		}
	}
	// The form was shown while the model still wrote it, and its last value is the answer.
	forms := lines[len(places) : len(lines)-1]
	if forms[0] != "{Cities:[Oslo Rome Paris] Advice:}" ||
		forms[len(forms)-1] != "{Cities:[Oslo Rome Paris] Advice:Take an umbrella, and wear good shoes.}" {
		t.Errorf("%d values: %q", len(forms), forms)
	}
}

// signature returns what only the provider can read of its reasoning about a city.
func signature(t *testing.T, messages []llm.Message, city string) string {
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Reasoning); ok && strings.Contains(r.Text, city) && r.Opaque != nil {
				var fields struct{ Signature, Encrypted_content string }
				if err := json.Unmarshal(r.Opaque.Data, &fields); err != nil {
					t.Fatal(err)
				}
				return fields.Signature + fields.Encrypted_content
			}
		}
	}
	return ""
}

// A provider without capacity is asked once, and the next one answers.
func TestFallback(t *testing.T) {
	keys(t)
	out := newOutput()
	full := simulator(t, out, &pawltest.Fault{Status: 429})
	free := simulator(t, out, nil)
	tool, cities := counted()
	names := []string{"openai:gpt-6.1-terra=" + full.URL, "anthropic:claude-sonnet-5-5=" + free.Root}
	if _, err := talk(t.Context(), names, tool, strings.NewReader("How is it in Oslo\n"), out); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(out.String(), "openai: rate_limit (429): made to fail; continuing with model 2 of 2\nclaude-sonnet-5-5: There is rain in Oslo.\n") || !slices.Equal(*cities, []string{"Oslo"}) {
		t.Errorf("%s, the tool was asked for %q", out, *cities)
	}
	// One request of each run, the question and the form. The form is asked for with other
	// instructions, to which the thinking of this model is not bound: it is refused once, and asked
	// for again without the thinking.
	if n, m := len(full.Received()), len(free.Received()); n != 2 || m != 4 {
		t.Errorf("%d requests to the full provider, %d to the free one; want 2 and 4", n, m)
	}
}

// Without another model, a full provider is an error.
func TestNoFallback(t *testing.T) {
	keys(t)
	out := newOutput()
	full := simulator(t, out, &pawltest.Fault{Status: 429})
	tool, cities := counted()
	names := []string{"openai:gpt-6.1-terra=" + full.URL, "azure:gpt-5=" + full.URL}
	_, err := talk(t.Context(), names, tool, strings.NewReader("How is it in Oslo\n"), out)
	if err == nil || !strings.Contains(err.Error(), "rate_limit") || len(*cities) > 0 {
		t.Errorf("%v, the tool was asked for %q", err, *cities)
	}
}
