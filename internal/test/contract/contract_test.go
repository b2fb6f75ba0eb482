package contract_test

import (
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/llm"
)

// program is a visit of a Go program: Agent.Run and Agent.Resume.
func program(t *testing.T, s *contract.Scene) contract.Visit {
	a := s.Agent()
	var last *pawl.Result
	return contract.Visit{
		Say: func(text string) contract.Shown {
			var earlier []llm.Message
			if last != nil {
				earlier = last.Messages
			}
			res, err := a.Run(t.Context(), append(earlier, llm.User(text))...)
			last = res
			return contract.ShownBy(res, err)
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			res, err := a.Resume(t.Context(), last, contract.Decisions(answers))
			last = res
			return contract.ShownBy(res, err)
		},
	}
}

func TestGo(t *testing.T) { contract.Play(t, "Go", program) }
