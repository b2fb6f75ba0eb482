package durable_test

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/store"
)

// An agent does the same in a journal.
func TestContract(t *testing.T) {
	contract.Play(t, "durable", func(t *testing.T, s *contract.Scene) contract.Visit {
		eng := &durable.Engine{Journal: new(store.MemoryJournal)}
		a := s.Agent()
		n := 0
		var last *pawl.Result
		run := func(msgs ...llm.Message) contract.Shown {
			res, err := eng.Runner(fmt.Sprint("run-", n), a).Run(t.Context(), msgs...)
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
