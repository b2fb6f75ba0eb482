package team_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
	"github.com/pawl-go/pawl/team"
)

// A task goes to the worker of the first matching rule, else to the lead's choice, else to the
// default. Without a default no worker gets it.
func TestRouter(t *testing.T) {
	rules := []team.Rule{{Worker: "bank", Include: []string{"invoice", "Pay"}, Exclude: []string{"draft"}}}
	for _, tt := range []struct {
		name, task, chosen, standard string
		calls, answer                string
	}{
		{"rule", "PAY this", "", "", "bank ok", "bank here"},
		{"excluded", "Pay the draft", `{"worker":"post"}`, "", "choose_worker ok; post ok", "post here"},
		{"chosen", "Send this", `{"worker":"post","reason":"It sends."}`, "bank", "choose_worker ok; post ok", "post here"},
		{"misspelt", "Send this", `{"worker":"pots"}|{"worker":"post"}`, "", "choose_worker ok; post ok", "post here"},
		{"none, with a default", "Hm", `{"worker":"none"}`, "bank", "choose_worker ok; bank ok", "bank here"},
		{"none", "Hm", `{"worker":"none"}`, "", "choose_worker ok", "No worker fits this task. Say it in other words, or which of them is to do it: bank, post."},
		{"never one, with a default", "Hm", `{}|{}|{}`, "bank", "choose_worker error; bank ok", "bank here"},
		{"never one", "Hm", `{}|{}|{}`, "", "choose_worker error", ""},
	} {
		var turns []script.Turn
		for _, c := range strings.Split(tt.chosen, "|") {
			turns = append(turns, script.Say(c))
		}
		boss := script.New(turns...)
		a, err := team.Router(&pawl.Agent{Name: "desk", Model: boss}, &team.RouterOptions{Rules: rules, Default: tt.standard},
			worker("bank", script.New(script.Say("bank here"))), worker("post", script.New(script.Say("post here"))))
		if err != nil {
			t.Fatal(err)
		}
		res, err := a.Run(t.Context(), llm.User(tt.task))
		if got := strings.Join(called(res), "; "); got != tt.calls || err == nil && res.Text() != tt.answer ||
			(err != nil) != (tt.answer == "") {
			t.Errorf("%s: got %s, %q, %v", tt.name, got, res.Text(), err)
		}
		if tt.name == "misspelt" {
			again := boss.Requests()[1].Messages
			if got := again[len(again)-1].Text(); !strings.Contains(got, `did you mean "post"?`) {
				t.Errorf("the lead was told %s", got)
			}
		}
	}
}

// A router has a conversation: each task is routed anew, with the conversation before it.
func TestRouterConversation(t *testing.T) {
	bank := script.New(script.Loop(script.Say("paid")))
	a, err := team.Router(&pawl.Agent{Name: "desk", Model: script.New()},
		&team.RouterOptions{Rules: []team.Rule{{Worker: "bank"}}}, worker("bank", bank))
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Run(t.Context(), llm.User("Pay invoice 7."))
	if err == nil {
		_, err = a.Resume(t.Context(), res, llm.User("The other one, too."))
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := bank.Requests()[1].Messages[1].Text(), "The other one, too.\n\nThe conversation before that:\nuser: Pay invoice 7.\nassistant: paid"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// With an output the lead writes the answer, since the worker knows nothing of its form.
func TestRouterOutput(t *testing.T) {
	boss := script.New(script.First(script.Expect(script.Say(`{"ok":true}`), script.Asked("paid")), script.Say(`{"worker":"bank"}`)))
	a, err := team.Router(&pawl.Agent{Model: boss, Output: []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)}, nil, worker("bank", script.New(script.Say("paid"))))
	if err != nil {
		t.Fatal(err)
	}
	res, err := a.Run(t.Context(), llm.User("Pay."))
	if err != nil || string(res.Output) != `{"ok":true}` {
		t.Errorf("got %s, %v", res.Output, err)
	}
}
