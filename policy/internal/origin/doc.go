// Package origin says where a value of a conversation comes from, and whether the user stands
// behind it. The package knows nothing of approvals, modes and middleware: package policy decides
// with its answers. The rules are in docs/flow.md.
//
//	a tool ──NewConduct──▶ Conduct ──Arguments──▶ []Argument, each value with a role
//	                                                  │
//	messages ──Read──▶ Index ──────────────────── Judge ──▶ why the call needs a question, or ""
//
// An Index holds what the messages say, in these forms:
//
//	words     what the user and the instructions said; they endorse
//	source    a result of a tool, with what its call had as arguments
//	spot      a place of a short value in a source: a field of a record, or a line of a text
//	record    an object of a result; a text of it that the user said names it
//	passage   running text of a source, in which anyone may have written
//	sighting  what the passages say about one value, remembered
//
// The results are read when the first value is looked for that the user did not say: most calls
// need none of them. All texts of an index are plain (plainText), so that they compare without
// case.
//
// To read the package, begin with conduct.go and roles.go (what an argument is for), then judge.go,
// grounds.go and trust.go (the decision). lookup.go and words.go answer the questions of trust.go,
// with what index.go and results.go have read.
package origin
