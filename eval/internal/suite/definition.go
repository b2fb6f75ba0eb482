// Package suite reads suites of evaluations, NAME.eval.yaml, by the rules of agents' files: strict,
// all faults at once, each with its place.
//
//	clerk.eval.yaml ─▶ File (plain data) ─▶ cases with their defaults and checks ─▶ Suite
//	clerk.yaml + the keys of a variant ─▶ agentfile.Agent
package suite

import (
	"github.com/pawl-go/pawl/eval/internal/check"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/tools/outside"
)

// File is a suite as its file states it.
type File struct {
	// The name of the suite.
	Eval string `yaml:"eval" required:"true"`

	// The file of the agent, or {file, agent}.
	Agent outside.JSON `yaml:"agent" required:"true"`

	// How often each case runs. Default: 1.
	Trials int `yaml:"trials" min:"1" max:"1000"`

	// The seed of the trials. Default: 1.
	Seed *int `yaml:"seed" min:"0"`

	// Trials at once. Default: 4.
	Parallel int `yaml:"parallel" min:"1" max:"1024"`

	// How often a trial that could not be judged is begun again. Default: 2.
	Retries *int `yaml:"retries" min:"0" max:"10"`

	// The most that all trials cost together, in US dollars. Default: no limit.
	Budget float64 `yaml:"budget" min:"0"`

	// The most time for all trials together. Default: no limit.
	Time outside.Duration `yaml:"time"`

	// The most requests a minute, by model: {"openai:gpt-6.1-terra": {requests: 60}}. All trials
	// share it. Default: no limit, until a provider refuses a request.
	Pace map[string]Pace `yaml:"pace"`

	// The baseline that the gate compares with. Default: none.
	Baseline string `yaml:"baseline"`

	// What must hold for the suite to pass.
	Gate *Gate `yaml:"gate"`

	// The agent, changed: {name, …} with any key of an agent's file. Default: one variant, now.
	Variants []map[string]outside.JSON `yaml:"variants"`

	// Variants as a product: {AXIS: [{as: WORD, value: VALUE}], exclude: [{AXIS: WORD}]}. An axis
	// is a key of an agent's file. Default: none.
	Matrix map[string]outside.JSON `yaml:"matrix"`

	// The variant that others are compared with. Default: the first.
	Base string `yaml:"base"`

	// What all cases have.
	Defaults *Defaults `yaml:"defaults"`

	// What is asked, in which world, and what must be true.
	Cases []Case `yaml:"cases" required:"true"`
}

// Pace bounds the requests to a model.
type Pace struct {
	// How many requests begin in a minute.
	Requests int `yaml:"requests" required:"true" min:"1"`
}

// Defaults are what all cases have.
type Defaults struct {
	// Limits of each run.
	Limits *agentfile.Limits `yaml:"limits"`

	// The world of each trial.
	World *World `yaml:"world"`

	// What a person answers.
	Answers []Answer `yaml:"answers"`

	// Checks of each trial.
	Checks []check.Definition `yaml:"checks"`
}

// Case is a case, or the files with cases.
type Case struct {
	// The name of the case, unique in the suite.
	ID string `yaml:"id"`

	// A pattern of files with cases: YAML (a case each) or JSONL (a case a line).
	Files string `yaml:"files"`

	// Words for gates and selections.
	Tags []string `yaml:"tags"`

	// The name of cases that are not independent of each other.
	Cluster string `yaml:"cluster"`

	// How often the case runs. Default: as the suite says.
	Trials int `yaml:"trials" min:"1" max:"1000"`

	// A remark for people.
	Note string `yaml:"note"`

	// Where the case comes from: a run, its digest, a date.
	From map[string]string `yaml:"from"`

	// What the user says: a text, or messages as in a Result.
	Input outside.JSON `yaml:"input"`

	// The world of each trial. Its keys stand over the world of the defaults.
	World *World `yaml:"world"`

	// Limits of each run. The lower of these and of the agent's count.
	Limits *agentfile.Limits `yaml:"limits"`

	// What a person answers. The first that fits counts.
	Answers []Answer `yaml:"answers"`

	// Checks, in addition to the checks of the defaults.
	Checks []check.Definition `yaml:"checks"`

	// Take the defaults. Default: true.
	Inherit *bool `yaml:"inherit"`

	// A run that must pass.
	Reference *Reference `yaml:"reference"`

	// Runs that must fail.
	Counterexamples []Reference `yaml:"counterexamples"`

	// To say and to do nothing is right. Default: false.
	MayDoNothing bool `yaml:"may_do_nothing"`

	// The case runs and is reported, and neither passes nor fails. Default: false.
	Draft bool `yaml:"draft"`
}

// World is what a trial runs in, made anew for each.
type World struct {
	// A folder whose files are copied to the root of the agent. Default: an empty root.
	Files string `yaml:"files"`

	// Environment variables, in addition to the environment of this process.
	Env map[string]string `yaml:"env"`

	// A database file that is copied. Default: an empty database.
	DB string `yaml:"db"`

	// Tools that are faked: the first line that fits a call answers it.
	Tools map[string][]Fake `yaml:"tools"`

	// Tools that may change the world outside of the trial.
	Real []string `yaml:"real"`

	// Tools that the agent has in this world alone. Lines under tools answer their calls.
	Functions []Function `yaml:"functions"`
}

// Function is the declaration of a tool that exists in a world alone.
type Function struct {
	// The name of the tool.
	Name string `yaml:"name" required:"true"`

	// What it does, for the model.
	Description string `yaml:"description" required:"true"`

	// The JSON Schema of its arguments. Default: no arguments.
	Input outside.JSON `yaml:"input"`

	// What a call may do: read, or write. Default: write.
	Effect string `yaml:"effect" enum:"read,write"`
}

// Fake is the answer to calls of a faked tool.
type Fake struct {
	// A matcher of the arguments. Default: any.
	Args outside.JSON `yaml:"args"`

	// The result: a text, or JSON.
	Result outside.JSON `yaml:"result"`

	// The text of an error result.
	Error string `yaml:"error"`

	// How many calls it answers. Default: all.
	Times int `yaml:"times" min:"1"`
}

// Answer is what a person says to a call that waits.
type Answer struct {
	// The name of the tool, or a pattern.
	Tool string `yaml:"tool" required:"true"`

	// A matcher of the arguments. Default: any.
	Args outside.JSON `yaml:"args"`

	// What is said: approve, deny, edit (the call runs with other arguments) or answer (a result,
	// without the call).
	Do string `yaml:"do" required:"true" enum:"approve,deny,edit,answer"`

	// The arguments of edit, the result of answer, or the reason of deny.
	With outside.JSON `yaml:"with"`

	// How many calls it answers. Default: all.
	Times int `yaml:"times" min:"1"`
}

// Reference is a run that is played by the real tools in a world of its own.
type Reference struct {
	// The calls, in order.
	Calls []ReferenceCall `yaml:"calls"`

	// What the run says at its end.
	Answer string `yaml:"answer"`
}

// ReferenceCall is a call of a Reference.
type ReferenceCall struct {
	// The name of the tool.
	Tool string `yaml:"tool" required:"true"`

	// The arguments. Default: none.
	Args outside.JSON `yaml:"args"`
}

// Gate is what must hold for a suite to pass.
type Gate struct {
	// The rate over all cases, by its estimate (rate) or by the lower end of its interval (lower).
	Pass *PassGate `yaml:"pass"`

	// The rate of each case.
	Case *MinGate `yaml:"case"`

	// The rate over the cases with a tag.
	Tags map[string]MinGate `yaml:"tags"`

	// The probability that k trials of a case all pass.
	All *AllGate `yaml:"all"`

	// How many trials may be errors: a number, or a share such as 5%. Default: 0.
	Errors outside.JSON `yaml:"errors"`

	// Against the baseline: a drop that is shown, or that is not excluded.
	Drop *DropGate `yaml:"drop"`

	// Against the baseline: how many cases may pass none of their trials that passed all.
	NewlyFailing *int `yaml:"newly_failing" min:"0"`
}

// MinGate is a smallest rate.
type MinGate struct {
	// The smallest rate that passes.
	Min *float64 `yaml:"min" required:"true" min:"0" max:"1"`
}

// PassGate is a smallest rate over all cases.
type PassGate struct {
	// The smallest rate that passes.
	Min *float64 `yaml:"min" required:"true" min:"0" max:"1"`

	// What is compared: rate, or lower (the lower end of the interval). Default: rate.
	By string `yaml:"by" enum:"rate,lower"`
}

// AllGate is a smallest probability that k trials all pass.
type AllGate struct {
	// How many trials.
	K int `yaml:"k" required:"true" min:"1"`

	// The smallest probability that passes.
	Min *float64 `yaml:"min" required:"true" min:"0" max:"1"`
}

// DropGate compares with the baseline.
type DropGate struct {
	// shown: fail on a drop with a one-sided p under 0.05, adjusted for the number of variants.
	// excluded: fail unless the interval excludes a drop of more than the margin.
	By string `yaml:"by" required:"true" enum:"shown,excluded"`

	// The margin of excluded. Default: 0.
	Margin float64 `yaml:"margin" min:"0" max:"1"`
}
