package guide

import (
	"context"
	"fmt"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// Case is a row of the data set: a question, the calls that must happen, and words of the answer.
type Case struct {
	Question, Calls, Answer string
}

// Grade is the reply of the judge.
type Grade struct {
	Score  int    `json:"score" jsonschema:"from 1 (wrong) to 5 (right and clear)"`
	Reason string `json:"reason"`
}

// reply returns a scripted model; an eval of your agent has the real one.
func reply(turn func(question string, results int) script.Turn) llm.Model {
	return script.New(script.Loop(script.Func(func(req *llm.Request) script.Turn {
		for _, m := range req.Messages {
			if m.Role == llm.RoleUser {
				return turn(m.Text(), len(script.Results(req)))
			}
		}
		return script.Say("")
	})))
}

func Example_evals() {
	ctx := context.Background()
	weather := pawl.Func("weather", "Current weather in a city.",
		func(_ context.Context, in struct{ City string }) (string, error) { return "rain in " + in.City, nil })
	agent := &pawl.Agent{Tools: []pawl.Toolset{weather}, Model: reply(func(q string, results int) script.Turn {
		switch {
		case strings.Contains(q, "Rome"):
			return script.Say("I think it is sunny.") // a guess, without a call
		case results == 0:
			return script.Call("weather", `{"City":"Oslo"}`)
		}
		return script.Say("There is rain in Oslo.")
	})}
	judge := &pawl.Agent{Instructions: "Grade the answer.", Model: reply(func(q string, _ int) script.Turn {
		if strings.Contains(q, "I think") {
			return script.Say(`{"score":2,"reason":"a guess"}`)
		}
		return script.Say(`{"score":5,"reason":"right"}`)
	})}

	for _, c := range []Case{
		{"How is the weather in Oslo?", "weather", "rain"},
		{"How is the weather in Rome?", "weather", "rain"},
	} {
		res, err := agent.Run(ctx, llm.User(c.Question))
		if err != nil {
			panic(err)
		}
		var calls []string
		for _, step := range res.Steps {
			for _, x := range step.Executions {
				calls = append(calls, x.Call.Name)
			}
		}
		grade, _, err := pawl.Into[Grade](ctx, judge, llm.User(c.Question+"\n\n"+res.Text()))
		if err != nil {
			panic(err)
		}
		fmt.Printf("calls %v, answer %v, judge %d: %s\n", strings.Join(calls, ",") == c.Calls,
			strings.Contains(res.Text(), c.Answer), grade.Score, grade.Reason)
	}

	// Output:
	// calls true, answer true, judge 5: right
	// calls false, answer false, judge 2: a guess
}
