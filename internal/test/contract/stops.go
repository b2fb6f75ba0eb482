package contract

// stops.go: limits, approvals and errors: why a run stops.

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

var limits = []Behaviour{
	{
		Group: subjectLimits, Name: "after the last round the model is asked for an answer",
		Turns:   turns(call("look", `{"at":"a"}`), say("What I have.")),
		Setting: Setting{Limits: pawl.Limits{Rounds: 1}},
		Want: Want{Text: "What I have.", End: pawl.ClassLimited, Executed: []string{`look {"at":"a"}`},
			Requests: 2, Sent: modes(llm.ToolAuto, llm.ToolNone)},
	},
	{
		Group: subjectLimits, Name: "a model that calls after the last round is stopped, and the call is not executed",
		Turns:   turns(call("look", `{"at":"a"}`), call("look", `{"at":"b"}`)),
		Setting: Setting{Limits: pawl.Limits{Rounds: 1}},
		Want:    Want{End: pawl.ClassLimited, Executed: []string{`look {"at":"a"}`}, Requests: 2},
	},
	{
		Group: subjectLimits, Name: "without rounds, the calls of the first reply are shown and not executed",
		Turns:   turns(call("look", `{"at":"a"}`)),
		Setting: Setting{Limits: pawl.Limits{Rounds: pawl.NoRounds}},
		Want:    Want{End: pawl.ClassLimited, Requests: 1, Calls: []string{"look"}},
		Except: map[string]Difference{
			"chat completions": {Why: handsOver, Page: "docs/server.md", Want: handedOver},
			"responses":        {Why: handsOver, Page: "docs/server.md", Want: handedOver},
			"messages":         {Why: handsOver, Page: "docs/server.md", Want: handedOver},
			"command":          {Why: "0 executes no call and returns the calls", Page: "docs/yaml.md", Want: handedOver},
		},
	},
	{
		Group: subjectLimits, Name: "calls beyond calls_per_step get a result that says so",
		Turns:   turns(both(call("look", `{"at":"a"}`), call("look", `{"at":"b"}`)), say(done)),
		Setting: Setting{Limits: pawl.Limits{CallsPerStep: 1}},
		Want:    Want{Text: done, Executed: []string{`look {"at":"a"}`}, Requests: 2, Sent: resultsFollowCalls},
	},
	{
		Group: subjectLimits, Name: "calls beyond calls are not executed, and the model is asked for an answer",
		Turns:   turns(call("look", `{"at":"a"}`), call("look", `{"at":"b"}`), say("What I have.")),
		Setting: Setting{Limits: pawl.Limits{Calls: 1}},
		Want:    Want{End: pawl.ClassLimited, Executed: []string{`look {"at":"a"}`}, Requests: 3},
	},
	{
		Group: subjectLimits, Name: "a model that repeats itself is stopped",
		Turns:   turns(script.Loop(call("look", `{"at":"a"}`))),
		Setting: Setting{Limits: pawl.Limits{LoopThreshold: 2}},
		Want: Want{End: pawl.ClassFailed, Requests: 4,
			Executed: []string{`look {"at":"a"}`, `look {"at":"a"}`, `look {"at":"a"}`, `look {"at":"a"}`}},
	},
	{
		Group: subjectLimits, Name: "tokens beyond the limit stop the run, and no further call is executed",
		Turns:   turns(used(call("look", `{"at":"a"}`), 900, 100), used(call("look", `{"at":"b"}`), 900, 100), say("never")),
		Setting: Setting{Limits: pawl.Limits{Tokens: 1500}},
		Want:    Want{End: pawl.ClassLimited, Executed: []string{`look {"at":"a"}`}},
	},
}

// handsOver is why an agent without rounds waits, and handedOver what it does.
const handsOver = "The calls of an agent without rounds are calls of the client"

var handedOver = &Want{End: pawl.ClassWaiting, Requests: 1, Calls: []string{"look"}}

var yes, no = []Verdict{{Tool: "pay", Approve: true}}, []Verdict{{Tool: "pay"}}

var asksPay = Setting{Ask: []string{"pay"}}

var approvals = []Behaviour{
	{
		Group: subjectApprovals, Name: "a call that needs a yes waits, and is not executed",
		Turns: turns(call("pay", `{"amount":5}`), say(done)), Setting: asksPay,
		Needs: []Ability{Questions},
		Want:  Want{End: pawl.ClassWaiting, Requests: 1},
	},
	{
		Group: subjectApprovals, Name: "the question has the tool and its arguments",
		Turns: turns(call("pay", `{"amount":5}`), say(done)), Setting: asksPay,
		Want: Want{End: pawl.ClassWaiting, Asked: []string{paid5}},
	},
	{
		Group: subjectApprovals, Name: "after a yes the call is executed once, and the run continues",
		Turns: turns(call("pay", `{"amount":5}`), say(done)), Setting: asksPay,
		Answers: [][]Verdict{yes},
		Want:    Want{Text: done, Executed: []string{paid5}, Requests: 2, Read: []string{"paid 5"}},
	},
	{
		Group: subjectApprovals, Name: "after a no the call is not executed, and the run continues",
		Turns: turns(call("pay", `{"amount":5}`), say("I did not pay.")), Setting: asksPay,
		Answers: [][]Verdict{no},
		Want:    Want{Text: "I did not pay.", Requests: 2, Unread: []string{"paid 5"}},
	},
	{
		Group: subjectApprovals, Name: "the model reads the reason of a no",
		Turns: turns(call("pay", `{"amount":5}`), say(done)), Setting: asksPay,
		Answers: [][]Verdict{{{Tool: "pay", Reason: "much too dear"}}},
		Want:    Want{Text: done, Requests: 2, Read: []string{"much too dear"}},
	},
	{
		Group: subjectApprovals, Name: "a yes with other arguments executes those, and the model reads it",
		Turns: turns(call("pay", `{"amount":5}`), say(done)), Setting: asksPay,
		Answers: [][]Verdict{{{Tool: "pay", Approve: true, Args: `{"amount":3}`}}},
		Want:    Want{Text: done, Executed: []string{`pay {"amount":3}`}, Requests: 2, Read: []string{"changed the arguments"}},
	},
	{
		Group: subjectApprovals, Name: "two questions of one reply get a yes and a no",
		Turns:   turns(both(call("pay", `{"amount":5}`), call("refund", `{"amount":6}`)), say(done)),
		Setting: Setting{Ask: []string{"pay", "refund"}},
		Answers: [][]Verdict{{{Tool: "pay", Approve: true}, {Tool: "refund"}}},
		Want: Want{Text: done, Executed: []string{paid5}, Requests: 2,
			Asked: []string{paid5, `refund {"amount":6}`}, Sent: resultsFollowCalls},
	},
	{
		Group: subjectApprovals, Name: "a read next to a question is executed, and once",
		Turns: turns(both(call("look", `{"at":"Oslo"}`), call("pay", `{"amount":5}`)), say(done)), Setting: asksPay,
		Answers: [][]Verdict{yes},
		Want:    Want{Text: done, Executed: []string{`look {"at":"Oslo"}`, paid5}, Requests: 2, Asked: []string{paid5}},
	},
	{
		Group: subjectApprovals, Name: "a second payment has a question of its own",
		Turns: turns(call("pay", `{"amount":5}`), call("pay", `{"amount":6}`), say(done)), Setting: asksPay,
		Answers: [][]Verdict{yes, no},
		Want:    Want{Text: done, Executed: []string{paid5}, Requests: 3, Asked: []string{paid5}},
	},
	{
		Group: subjectApprovals, Name: "a denied tool is not executed, and there is no question",
		Turns:   turns(call("pay", `{"amount":5}`), say(done)),
		Setting: Setting{Deny: []string{"pay"}},
		Want:    Want{Text: done, Requests: 2, Unread: []string{"paid 5"}},
	},
	{
		Group: subjectApprovals, Name: "deny wins over ask",
		Turns:   turns(call("pay", `{"amount":5}`), say(done)),
		Setting: Setting{Ask: []string{"pay"}, Deny: []string{"pay"}},
		Want:    Want{Text: done, Requests: 2, Unread: []string{"paid 5"}},
	},
	{
		Group: subjectApprovals, Name: "a rule about arguments asks for those alone",
		Turns:   turns(both(call("pay", `{"amount":5}`), call("pay", `{"amount":500}`)), say(done)),
		Setting: Setting{Ask: []string{`pay(amount > 100)`}},
		Answers: [][]Verdict{no},
		Want:    Want{Text: done, Executed: []string{paid5}, Requests: 2, Asked: []string{`pay {"amount":500}`}},
	},
	{
		Group: subjectApprovals, Name: "arguments that do not fit are refused before a question",
		Turns: turns(call("pay", `{"amount":"seven"}`), say(done)), Setting: asksPay,
		Want: Want{Text: done, Requests: 2, Read: []string{"do not fit"}},
	},
	{
		Group: subjectApprovals, Name: "a call with a yes that fails is a result",
		Turns:   turns(call("fail", `{}`), say(done)),
		Setting: Setting{Ask: []string{"fail"}},
		Answers: [][]Verdict{{{Tool: "fail", Approve: true}}},
		Want:    Want{Text: done, Executed: []string{`fail {}`}, Requests: 2, Read: []string{broken}},
	},
}

// down is the error of a provider.
var down = &llm.ProviderError{Provider: "test", Code: llm.CodeInvalidRequest, Message: "the lamp is red"}

var failures = []Behaviour{
	{
		Group: subjectErrors, Name: "a provider that fails at once is a failed run",
		Turns: turns(script.Fail(down)),
		Want:  Want{End: pawl.ClassFailed},
	},
	{
		Group: subjectErrors, Name: "a provider that fails after a write is a failed run, with one write",
		Turns: turns(call("pay", `{"amount":5}`), script.Fail(down)),
		Want:  Want{End: pawl.ClassFailed, Executed: []string{paid5}},
	},
	{
		Group: subjectErrors, Name: "a reply that breaks off after a call is not executed",
		Turns: turns(both(call("pay", `{"amount":5}`), script.Fail(down))),
		Want:  Want{End: pawl.ClassFailed},
	},
	{
		Group: subjectErrors, Name: "the cause of a failure is shown",
		Turns: turns(script.Fail(down)),
		Want:  Want{End: pawl.ClassFailed, Cause: "the lamp is red"},
	},
	{
		Group: subjectErrors, Name: "a refusal of the content filter is not shown as an answer",
		Turns: turns(finish(say(""), llm.FinishReasonContentFilter)),
		Want:  Want{End: pawl.ClassFailed},
	},
	{
		Group: subjectErrors, Name: "an empty reply is not shown as an answer",
		Turns: turns(script.Loop(say(""))),
		Want:  Want{End: pawl.ClassFailed},
	},
}
