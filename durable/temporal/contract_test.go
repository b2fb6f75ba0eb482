package temporal

import (
	"fmt"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/contract"
	"github.com/pawl-go/pawl/llm"
)

// An agent does the same in a workflow.
func TestContract(t *testing.T) {
	contract.Play(t, "Temporal", func(t *testing.T, s *contract.Scene) contract.Visit {
		return newFlowVisit(t, s).visit()
	})
}

// flowVisit is a client of one workflow. The workflow works until it is over, in a goroutine of its
// own; its client is between two ticks of its clock.
type flowVisit struct {
	env     *env
	shown   chan contract.Shown
	answers chan []contract.Answer
	asked   string // the questions that were shown
	over    chan struct{}
}

func newFlowVisit(t *testing.T, s *contract.Scene) *flowVisit {
	v := &flowVisit{
		env:     start(t, s.Agent()),
		shown:   make(chan contract.Shown),
		answers: make(chan []contract.Answer),
		over:    make(chan struct{}),
	}
	v.env.tick = v.tick
	t.Cleanup(func() { close(v.over) })
	return v
}

// tick shows new questions, and sends the answers.
func (v *flowVisit) tick() error {
	s, err := v.env.state()
	if err != nil || !s.Waits {
		return err
	}
	shown := contract.Shown{End: pawl.ClassWaiting}
	for _, w := range s.Pending {
		shown.Questions = append(shown.Questions, contract.QuestionOf(&w))
	}
	if asked := fmt.Sprint(shown.Questions); asked == v.asked {
		return nil
	} else {
		v.asked = asked
	}
	select {
	case v.shown <- shown:
	case <-v.over:
		v.env.CancelWorkflow()
		return nil
	}
	select {
	case answers := <-v.answers:
		for _, a := range answers {
			if err := v.env.update(updateDecide, a.Question.Key, []llm.Decision{a.Decision()}); err != nil {
				return err
			}
		}
	case <-v.over:
		v.env.CancelWorkflow()
	}
	return nil
}

// visit returns the visit.
func (v *flowVisit) visit() contract.Visit {
	return contract.Visit{
		Say: func(text string) contract.Shown {
			go func() {
				out, err := v.env.run(input{Messages: []llm.Message{llm.User(text)}})
				shown := contract.Shown{End: pawl.ClassFailed}
				if out != nil {
					shown = contract.ShownBy(out.Result, err)
					shown.Cause += out.Error
				} else if err != nil {
					shown.Cause = err.Error()
				}
				select {
				case v.shown <- shown:
				case <-v.over:
				}
			}()
			return <-v.shown
		},
		Reply: func(answers []contract.Answer) contract.Shown {
			v.answers <- answers
			return <-v.shown
		},
	}
}
