// Package contract has one table of what an agent does, and plays it at each door: each way to an
// agent, such as Go, a file, or an endpoint of the server.
//
// A [Behaviour] is a script of a model, what a client says, and what must come of it. Most of it is
// observed outside of the door: the tools count what they execute, and the model has the requests
// that it got. A test of each door calls [Play] with a function that opens an agent there. A door
// that lacks an ability, or differs, says so in the table, with a reason or with a sentence of a
// page. The page docs/doors.md is made from the table.
package contract
