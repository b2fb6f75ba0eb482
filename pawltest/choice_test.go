package pawltest_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawl-go/pawl/internal/test/wiretest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
)

// choices are the ways to choose a tool, with the wires that refuse a way and the text of the
// refusal.
var choices = []struct {
	name    string
	choice  llm.ToolChoice
	effort  string
	refused map[string]string
}{
	{"auto", llm.ToolChoice{}, "", nil},
	{"none", llm.ToolChoice{Mode: llm.ToolNone}, "", nil},
	{"required", llm.ToolChoice{Mode: llm.ToolRequired}, "", nil},
	{"one name", llm.Named("find"), "", nil},
	{"two of three names", llm.Named("look", "find"), "", map[string]string{pawltest.Anthropic: "but not one of some: name one tool, or offer only those"}},
	{"required, while it thinks", llm.ToolChoice{Mode: llm.ToolRequired}, "low", map[string]string{pawltest.Anthropic: "what it thinks is to decide whether it calls a tool"}},
	{"one name, while it thinks", llm.Named("find"), "low", map[string]string{pawltest.Anthropic: "refuses a forced call (required or named) while the model thinks"}},
}

// Each choice reaches the provider unchanged or is refused before the request, with a sentence that
// gives the reason. With -update the table in docs/providers.md is written.
func TestToolChoices(t *testing.T) {
	var table strings.Builder
	table.WriteString("| choice |")
	for _, w := range wires {
		table.WriteString(" " + w.name + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat("---|", len(wires)) + "\n")
	for _, c := range choices {
		fmt.Fprintf(&table, "| %s |", c.name)
		for _, w := range wires {
			word := ""
			t.Run(c.name+"/"+w.name, func(t *testing.T) { word = sentChoice(t, w, c.choice, c.effort, c.refused[w.api]) })
			table.WriteString(" " + word + " |")
		}
		table.WriteString("\n")
	}
	wiretest.Part(t, "providers.md", "choice", table.String())
}

// sentChoice sends a choice over w and returns its form in the request.
func sentChoice(t *testing.T, w wire, choice llm.ToolChoice, effort, refused string) string {
	m, s := w.on(t, say("Well."), pawltest.SimulatorOptions{})
	req := &llm.Request{Messages: []llm.Message{llm.User("Go.")}, Choice: choice, Settings: llm.Settings{Effort: effort}}
	for _, name := range []string{"look", "find", "keep"} {
		req.Tools = append(req.Tools, &llm.ToolSpec{Name: name, Input: lookAt})
	}
	_, err := llm.Complete(t.Context(), m, req)
	if refused != "" {
		var got *llm.ProviderError
		if !errors.As(err, &got) || got.Code != llm.CodeUnsupported || !strings.Contains(got.Message, refused) ||
			len(s.Received()) != 0 {
			t.Errorf("got %v and %d requests, want an error with %q before anything is sent", err, len(s.Received()), refused)
		}
		return "refused"
	}
	if err != nil {
		t.Fatal(err)
	}
	got := s.Received()[0]
	if len(got.Violations) > 0 || got.Request.Choice.Mode != choice.Mode ||
		!slices.Equal(got.Request.Choice.Names, choice.Names) || len(got.Request.Tools) != 3 {
		t.Errorf("arrived as %+v, %v: %s", got.Request.Choice, got.Violations, got.Body)
	}
	var body struct {
		Choice json.RawMessage `json:"tool_choice"`
		Config struct {
			Calling json.RawMessage `json:"functionCallingConfig"`
		} `json:"toolConfig"`
	}
	if err := json.Unmarshal(got.Body, &body); err != nil {
		t.Fatal(err)
	}
	sent := body.Choice
	if sent == nil {
		sent = body.Config.Calling
	}
	if sent == nil {
		return "nothing: it is the default"
	}
	return "`" + string(bytes.TrimSpace(sent)) + "`"
}
