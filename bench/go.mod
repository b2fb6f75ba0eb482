// The benchmark is a module of its own, so that nothing of it reaches a user of pawl. Its driver is built in a
// workspace that compare makes at run time, of this module, pawl and the benchmark's harness; so it requires nothing here.
module github.com/pawl-go/pawl/bench

go 1.26.0
