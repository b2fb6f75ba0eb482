package contract_test

import (
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/contract"
)

// mutants are doors with one fault each.
var mutants = map[string]func(contract.Visit) contract.Visit{
	"the answer is lost": shows(func(s *contract.Shown) { s.Text = "" }),
	"the answer is cut":  shows(func(s *contract.Shown) { s.Text = s.Text[:min(len(s.Text), 4096)] }),
	"the answer is escaped": shows(func(s *contract.Shown) {
		s.Text = strings.ReplaceAll(s.Text, "&", "&amp;")
	}),
	"an end without an answer is a success": shows(func(s *contract.Shown) {
		if s.End == pawl.ClassFailed {
			s.End = pawl.ClassAnswered
		}
	}),
	"a limit is a success": shows(func(s *contract.Shown) {
		if s.End == pawl.ClassLimited {
			s.End = pawl.ClassAnswered
		}
	}),
	"the output is lost":         shows(func(s *contract.Shown) { s.Output = nil }),
	"the tokens are lost":        shows(func(s *contract.Shown) { s.Tokens = 0 }),
	"tokens are counted twice":   shows(func(s *contract.Shown) { s.Tokens *= 2 }),
	"returned calls are lost":    shows(func(s *contract.Shown) { s.Calls = nil }),
	"the cause is lost":          shows(func(s *contract.Shown) { s.Cause = "" }),
	"the arguments are not told": shows(func(s *contract.Shown) { hideArgs(s.Questions) }),
	"each task is asked twice": says(func(say saying, text string) contract.Shown {
		say(text)
		return say(text)
	}),
	"the task is trimmed": says(func(say saying, text string) contract.Shown {
		return say(strings.Join(strings.Fields(text), " "))
	}),
	"a no is a yes":              replies(func(a *contract.Answer) { a.Approve = true }),
	"a yes is a no":              replies(func(a *contract.Answer) { a.Approve = false }),
	"the reason is lost":         replies(func(a *contract.Answer) { a.Reason = "" }),
	"edited arguments are lost":  replies(func(a *contract.Answer) { a.Args = "" }),
	"the client's result is odd": replies(func(a *contract.Answer) { a.Result = "something" }),
}

// shows returns a mutant that shows something else.
func shows(change func(*contract.Shown)) func(contract.Visit) contract.Visit {
	return func(v contract.Visit) contract.Visit {
		say, reply := v.Say, v.Reply
		v.Say = func(text string) contract.Shown {
			shown := say(text)
			change(&shown)
			return shown
		}
		v.Reply = func(answers []contract.Answer) contract.Shown {
			shown := reply(answers)
			change(&shown)
			return shown
		}
		return v
	}
}

// saying is the function Say of a visit.
type saying = func(text string) contract.Shown

// says returns a mutant that says something else.
func says(change func(say saying, text string) contract.Shown) func(contract.Visit) contract.Visit {
	return func(v contract.Visit) contract.Visit {
		say := v.Say
		v.Say = func(text string) contract.Shown { return change(say, text) }
		return v
	}
}

// replies returns a mutant that answers otherwise.
func replies(change func(*contract.Answer)) func(contract.Visit) contract.Visit {
	return func(v contract.Visit) contract.Visit {
		reply := v.Reply
		v.Reply = func(answers []contract.Answer) contract.Shown {
			for i := range answers {
				change(&answers[i])
			}
			return reply(answers)
		}
		return v
	}
}

// hideArgs removes the arguments of questions.
func hideArgs(questions []contract.Question) {
	for i := range questions {
		questions[i].Args = "{}"
	}
}

// Each planted fault of a door is found by a behaviour.
func TestMutants(t *testing.T) {
	for name, mutate := range mutants {
		found := contract.Found(t, "Go", func(t *testing.T, s *contract.Scene) contract.Visit {
			return mutate(program(t, s))
		})
		if found == "" {
			t.Errorf("no behaviour finds that %s", name)
		}
	}
	if found := contract.Found(t, "Go", program); found != "" {
		t.Errorf("without a fault, a behaviour finds one: %s", found)
	}
}
