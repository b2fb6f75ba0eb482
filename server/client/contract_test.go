package client_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/internal/test/runtest"
	"github.com/pawl-go/pawl/llm"
)

// An agent does the same for a program that runs it on a server.
func TestContract(t *testing.T) {
	contract.Play(t, "remote Runner", func(t *testing.T, s *contract.Scene) contract.Visit {
		c, _ := serve(t, s.Agent(), nil)
		n := 0
		var last *pawl.Result
		run := func(msgs ...llm.Message) contract.Shown {
			res, err := runtest.Ended(pawl.Collect(c.Runner(fmt.Sprint("run-", n), s.Name).Stream(t.Context(), msgs...), nil))
			last = res
			return contract.ShownBy(res, err)
		}
		return contract.Visit{
			Say: func(text string) contract.Shown {
				n++
				var earlier []llm.Message
				if last != nil {
					earlier = last.Messages
				}
				return run(append(earlier, llm.User(text))...)
			},
			Reply: func(answers []contract.Answer) contract.Shown { return run(contract.Decisions(answers)) },
		}
	})
}
