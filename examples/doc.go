// Package examples shows, as tests, how to supply your own part where pawl has a place for one:
//
//	model_test.go      a Model: anything that can continue a conversation
//	executor_test.go   an Executor: where a call is executed, here in another process
//	from_test.go       the snippets of docs/from
//	toolset_test.go    a Toolset: one object that serves three functions
//	calls_test.go      the snippets of docs/calls.md: repair, effects, approval, limits, observers
//	toolchoice_test.go the requests of docs/tools.md: how to steer the choice of a tool
//
// The folder quickstart holds the program of the README. The other folders with programs are the
// applications of examples/README.md. Nothing imports this package.
package examples
