// Package check judges what is kept of a trial. A Definition is a check as a suite states it, and
// Compile makes a Check of it.
//
//	answer    what the run said              output   its JSON
//	calls     what it asked for and did      effects  what the ledger says happened
//	files     what the world has afterwards  asked    what waited for a person
//	stop      why it stopped                 spent    what it used
//
// Checks read a trial.Record alone: no model, no clock, no file of the machine. So the same checks
// of the same records have the same results.
package check

import (
	"github.com/pawl-go/pawl/tools/outside"
)

// Definition is a check as a suite has it: one kind, and what all kinds have.
type Definition struct {
	// What reports call the check. Default: its kind.
	Name string `yaml:"name"`

	// The weight in the score, which gates nothing. Default: 1.
	Weight *float64 `yaml:"weight" min:"0"`

	// Measure, and gate nothing. Default: false.
	Observe bool `yaml:"observe"`

	// Passes if this check does not.
	Not *Definition `yaml:"not"`

	// Passes if one of these checks does.
	Any []Definition `yaml:"any"`

	// Passes if so many of these checks do.
	AtLeast *AtLeast `yaml:"at_least"`

	// What the run said.
	Answer *Answer `yaml:"answer"`

	// The JSON of the answer.
	Output *Output `yaml:"output"`

	// What the run asked for and did.
	Calls *Calls `yaml:"calls"`

	// What the ledger of the run says happened.
	Effects *Effects `yaml:"effects"`

	// The files of the world afterwards.
	Files *Files `yaml:"files"`

	// Which calls waited for a person: {none: true}, or a list of {tool, args, times}, and no
	// others.
	Asked outside.JSON `yaml:"asked"`

	// Why the run stopped: one cause, or a list.
	Stop outside.JSON `yaml:"stop"`

	// What the run used: cost, time (seconds), rounds, requests, calls, tokens, input, output,
	// corrections, invalid, repairs.
	Spent map[string]Range `yaml:"spent"`
}

// AtLeast is a number of checks.
type AtLeast struct {
	// How many pass.
	N int `yaml:"n" required:"true" min:"1"`

	// The checks.
	Of []Definition `yaml:"of" required:"true"`
}

// Range is a bound below, above, or both.
type Range struct {
	// The smallest value that passes. Default: none.
	Min *float64 `yaml:"min" json:"min,omitzero"`

	// The largest value that passes. Default: none.
	Max *float64 `yaml:"max" json:"max,omitzero"`
}

// Answer says what the answer is.
type Answer struct {
	// The whole answer.
	Equals string `yaml:"equals"`

	// A text, or a list of texts, all of which are in the answer.
	Contains outside.JSON `yaml:"contains"`

	// Texts, one of which is in the answer.
	ContainsAny []string `yaml:"contains_any"`

	// A text, or a list of texts, none of which is in the answer.
	Excludes outside.JSON `yaml:"excludes"`

	// An expression (RE2) that matches in the answer.
	Regex string `yaml:"regex"`

	// How the answer begins.
	Starts string `yaml:"starts"`

	// How the answer ends.
	Ends string `yaml:"ends"`

	// Case and spaces do not count. Default: false.
	Fold bool `yaml:"fold"`

	// A number in the answer.
	Number *Number `yaml:"number"`

	// The answer is JSON.
	JSON *Output `yaml:"json"`
}

// Number is a number in a text.
type Number struct {
	// The number.
	Value *float64 `yaml:"value" required:"true"`

	// How far it may be from that. Default: 0.
	Within float64 `yaml:"within" min:"0"`

	// How far it may be from that, in percent of it. Default: 0.
	Percent float64 `yaml:"percent" min:"0"`

	// Which number of the text counts: only (there is one) or last. Default: only.
	Pick string `yaml:"pick" enum:"only,last"`
}

// Output says what a JSON value is.
type Output struct {
	// A JSON Schema that it fits.
	Schema outside.JSON `yaml:"schema"`

	// Matchers by JSON Pointer; a segment * is each value of a list or an object.
	At map[string]outside.JSON `yaml:"at"`
}

// Calls says what a run asks for and does.
type Calls struct {
	// Calls that are done.
	Expect *[]Call `yaml:"expect"`

	// Whether the order counts. Default: any.
	Order string `yaml:"order" enum:"any,in_order,exact"`

	// Which other calls may be done, with expect. Default: reads.
	Extra string `yaml:"extra" enum:"reads,allow,forbid"`

	// Names and patterns of tools, and calls, that are not asked for.
	Forbid []outside.JSON `yaml:"forbid"`

	// No call is asked for: all, or writes.
	None string `yaml:"none" enum:"all,writes"`

	// How many calls are done, by name or pattern.
	Count map[string]Range `yaml:"count"`

	// Which calls count: all, with those in plans, programs and agents, or top. Default: all.
	Within string `yaml:"within" enum:"all,top"`
}

// Call is an expected call.
type Call struct {
	// The name of the tool, or a pattern.
	Tool string `yaml:"tool" json:"tool" required:"true"`

	// A matcher of the arguments. Default: any.
	Args outside.JSON `yaml:"args" json:"args,omitzero"`

	// A matcher of the text of the result. Default: any.
	Result outside.JSON `yaml:"result" json:"result,omitzero"`

	// How it ended. Default: ok.
	Outcome string `yaml:"outcome" json:"outcome,omitzero"`

	// How often: a number, or {min, max}. Default: 1.
	Times outside.JSON `yaml:"times" json:"times,omitzero"`

	// A name for after.
	ID string `yaml:"id" json:"id,omitzero"`

	// The id of a call that is earlier.
	After string `yaml:"after" json:"after,omitzero"`
}

// Effects says what the ledger of a run has.
type Effects struct {
	// Effects that completed, by name or pattern of the tool.
	Completed map[string]Range `yaml:"completed"`

	// Effects that failed.
	Failed map[string]Range `yaml:"failed"`

	// Effects of which it is not known whether they happened.
	Unknown map[string]Range `yaml:"unknown"`

	// Tools of which no two completed effects have equal arguments.
	Once []string `yaml:"once"`
}

// Files says what the world has afterwards.
type Files struct {
	// Files by path.
	At map[string]File `yaml:"at"`

	// All other files: unchanged or any. Default: unchanged.
	Others string `yaml:"others" enum:"unchanged,any"`
}

// File says what a file is.
type File struct {
	// The whole content.
	Equals *string `yaml:"equals"`

	// A text, or a list of texts, all of which are in it.
	Contains outside.JSON `yaml:"contains"`

	// An expression (RE2) that matches in it.
	Regex string `yaml:"regex"`

	// A matcher of its content as JSON.
	JSON outside.JSON `yaml:"json"`

	// A file next to the suite with the same content.
	SameAs string `yaml:"same_as"`

	// The digest of the content, in hexadecimal digits.
	SHA256 string `yaml:"sha256"`

	// There is no such file.
	Absent bool `yaml:"absent"`

	// It is as before.
	Unchanged bool `yaml:"unchanged"`
}
