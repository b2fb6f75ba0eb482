// Package examples shows, as tests that run, how to supply your own part where pawl has a place for one:
//
//	model_test.go      a Model of your own: whatever can continue a conversation
//	executor_test.go   an Executor of your own: where and when calls are carried out
//	toolset_test.go    a Toolset of your own: one object that serves three functions
//	calls_test.go      the snippets of docs/calls.md: what is mended, effects, approval, limits, observers
//	toolchoice_test.go the requests of docs/tools.md: what moves a model's choice of tool
//
// The folder quickstart holds the program of the README. Nothing imports this package.
package examples
