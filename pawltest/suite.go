package pawltest

import (
	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest/internal/suite"
	"github.com/pawl-go/pawl/pawltest/internal/suite/executor"
	"github.com/pawl-go/pawl/pawltest/internal/suite/model"
	"github.com/pawl-go/pawl/pawltest/internal/suite/runner"
	"github.com/pawl-go/pawl/pawltest/mutant"
)

// T is the part of a test that the suites need. *testing.T implements it.
type T[Self any] interface{ mutant.T[Self] }

// TestModel runs the suite that every llm.Model must pass: requests arrive complete, replies come
// back complete, and errors are errors. open returns the Model to test, set up so that it sends its
// requests to behind and returns behind's replies. The suite compares both ends.
//
// A Model without a wire is behind itself. A Model of an API of your own needs a small server that
// reads a request, passes it to behind, and writes the reply. TestAdapter has that server for the
// APIs of Simulator. The Model must not retry failed requests.
//
//	pawltest.TestModel(t, func(t *testing.T, behind llm.Model) llm.Model {
//		s := httptest.NewServer(handler(behind)) // speaks the API
//		t.Cleanup(s.Close)
//		return mine.New(s.URL)
//	})
//
// lacks names the parts of the suite that the API cannot express, such as "request/settings/top_p"
// or "opaque". The test logs them. ScoreModel shows what the suite finds.
func TestModel[TT T[TT]](t TT, open func(t TT, behind llm.Model) llm.Model, lacks ...string) {
	t.Helper()
	suite.Run(t, model.Parts("", open), lacks)
}

// ScoreModel plants the faults of mutant.Models, one at a time, in the Model that open returns. A
// fault that TestModel does not find is an error. So is a fault that it finds without a planted
// one. The arguments are the same as for TestModel.
func ScoreModel[TT T[TT]](t TT, open func(t TT, behind llm.Model) llm.Model, lacks ...string) mutant.Score {
	t.Helper()
	suite := func(t TT, r *mutant.Recorder, plant func(llm.Model) llm.Model) {
		TestModel(r, func(_ *mutant.Recorder, behind llm.Model) llm.Model { return plant(open(t, behind)) }, lacks...)
	}
	return mutant.Try(t, mutant.Models(), lacks, suite)
}

// TestExecutor runs the suite that every Executor must pass. Each part executes the calls of an
// agent by the Executor and again without it: the executions, the conversation, the events of each
// call and the effects of the tools are the same. Calls are executed together where their order
// allows it, their events arrive while they run, and all calls have ended when a cancelled run has.
//
// open returns the Executor of one run of the agent, whose tools count what they do. An Executor
// that executes calls in another process attaches them to this agent. lacks names the parts that do
// not apply. ScoreExecutor shows what the suite finds.
func TestExecutor[TT T[TT]](t TT, open func(t TT, a *pawl.Agent) pawl.Executor, lacks ...string) {
	t.Helper()
	executor.Test(t, open, lacks)
}

// ScoreExecutor plants the faults of mutant.Executors, one at a time, in the Executor that open
// returns. A fault that TestExecutor does not find is an error. So is a fault that it finds without
// a planted fault. The arguments are the same as for TestExecutor.
func ScoreExecutor[TT T[TT]](t TT, open func(t TT, a *pawl.Agent) pawl.Executor, lacks ...string) mutant.Score {
	t.Helper()
	suite := func(t TT, r *mutant.Recorder, plant func(pawl.Executor) pawl.Executor) {
		TestExecutor(r, func(_ *mutant.Recorder, a *pawl.Agent) pawl.Executor { return plant(open(t, a)) }, lacks...)
	}
	return mutant.Try(t, mutant.Executors(), lacks, suite)
}

// TestRunner runs the suite that every Runner of agents must pass: an agent itself, durable runs,
// runs of a server or a cluster. open returns a new run of the agent, which has the name "clerk".
// The first Stream starts the run with messages, and each later one resumes it with Decisions and
// results when it is pending. Each Runner is used by one goroutine at a time, and several Runners
// concurrently.
//
//	pawltest.TestRunner(t, func(t *testing.T, a *pawl.Agent) pawl.Runner {
//		return engine.Runner(rand.Text(), a)
//	})
//
// The suite tests the guarantees for observers: the order and number of events, the agent's own
// Result, errors after the end that belong to it, and the effects of a cancellation and of a break.
// lacks names the parts that do not apply. ScoreRunner shows what the suite finds.
func TestRunner[TT T[TT]](t TT, open func(t TT, a *pawl.Agent) pawl.Runner, lacks ...string) {
	t.Helper()
	runner.Test(t, open, lacks)
}

// ScoreRunner plants the faults of mutant.Runners, one at a time, in the Runner that open returns.
// A fault that TestRunner does not find is an error. So is a fault that it finds without a planted
// fault. The arguments are the same as for TestRunner.
func ScoreRunner[TT T[TT]](t TT, open func(t TT, a *pawl.Agent) pawl.Runner, lacks ...string) mutant.Score {
	t.Helper()
	suite := func(t TT, r *mutant.Recorder, plant func(pawl.Runner) pawl.Runner) {
		TestRunner(r, func(_ *mutant.Recorder, a *pawl.Agent) pawl.Runner { return plant(open(t, a)) }, lacks...)
	}
	return mutant.Try(t, mutant.Runners(), lacks, suite)
}

// InMemory returns a Runner of one run of a in this process, which resumes with Decisions as
// durable runs do. TestRunner compares other Runners with it.
func InMemory(a *pawl.Agent) pawl.Runner { return suite.InMemory(a, nil) }
