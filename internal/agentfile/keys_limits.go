package agentfile

// keys_limits.go: the keys of what bounds a run, its calls, its commands and its texts.

import (
	"github.com/pawl-go/pawl/tools/outside"
)

// Limits bound a run. The comments of the keys of pawl.LimitInfos are their texts there.
type Limits struct {
	// Maximum number of rounds of calls; 0 executes no call and returns the calls. Default: 20.
	Rounds *int `yaml:"rounds" min:"0"`

	// Maximum number of executed calls; later calls are rejected, and the model is asked for an
	// answer.
	Calls *int `yaml:"calls" min:"1"`

	// Maximum number of executed calls in one reply; later calls are rejected with a result that
	// says so.
	CallsPerStep *int `yaml:"calls_per_step" min:"1"`

	// Maximum number of concurrent calls. Default: 10.
	Parallel *int `yaml:"parallel" min:"1"`

	// Maximum number of tokens of all requests and replies, approximately: a request that could
	// exceed it is the last.
	Tokens *int `yaml:"tokens" min:"1"`

	// Maximum cost of the run in US dollars, approximately: a request that could exceed it is the
	// last. Only for models with a price in the catalogue.
	Cost *float64 `yaml:"cost" above:"0"`

	// Maximum time of the run, such as 90s or 10m. It cancels requests and calls in progress.
	Time *outside.Duration `yaml:"time" above:"0"`

	// Maximum number of replies that are sent back: answers that do not fit the output, and calls
	// that the provider could not read. Default: 2.
	Corrections *int `yaml:"corrections" min:"0"`

	// The number of identical calls with identical results before the model is warned. Default: 3.
	Repeats *int `yaml:"repeats" min:"1" max:"50"`

	// The last request at a limit: answer (the model is asked for an answer) or return (its calls
	// are returned). Default: answer.
	AtLimit string `yaml:"at_limit" enum:"answer,return"`
}

// SandboxLimits bound each shell command. Sizes are in MiB.
type SandboxLimits struct {
	// Maximum time of a command whose call names none, at most 5m. Default: 30s, with toolchains
	// 5m.
	Time *outside.Duration `yaml:"time" above:"0"`

	// MiB of memory of all processes together. Default: 2048, with toolchains 4096.
	Memory *int `yaml:"memory" min:"1"`

	// Maximum number of processes and threads. Default: 64, with toolchains 1024.
	Processes *int `yaml:"processes" min:"1"`
}

// Approve says which calls may run.
type Approve struct {
	// These never run; the model receives a denial.
	Deny []string `yaml:"deny"`

	// These wait for a decision.
	Ask []string `yaml:"ask"`

	// These run.
	Allow []string `yaml:"allow"`

	// The decision on all other calls. Default: calls that may change the world wait, others run.
	Else string `yaml:"else" enum:"allow,ask,deny"`

	// The time from an approval to the start of the call; after it the question is asked again. 0s
	// means no limit. Default: 0s.
	Within *outside.Duration `yaml:"within"`
}

// Rate bounds how often calls begin.
type Rate struct {
	// Names of tools, patterns and effects. Default: every tool.
	Tools []string `yaml:"tools"`

	// One call each, such as 1s.
	Every outside.Duration `yaml:"every" above:"0" required:"true"`

	// Calls that may begin at once. Default: 1.
	Burst *int `yaml:"burst" min:"1"`

	// The longest wait for a turn; a call that would wait longer is blocked. Default: none.
	Wait outside.Duration `yaml:"wait"`
}

// Breaker stops calling a tool that fails.
type Breaker struct {
	// Default: every tool, each by itself.
	Tools []string `yaml:"tools"`

	// Failures in a row. Default: 5.
	Failures *int `yaml:"failures" min:"1"`

	// How long the tool is not called. Default: 30s.
	Pause outside.Duration `yaml:"pause"`
}

// Cache stores results of pure tools.
type Cache struct {
	// Default: every pure tool.
	Tools []string `yaml:"tools"`

	// The size of the stored results. Default: 64 MiB.
	Bytes *int `yaml:"bytes" min:"1"`

	// The validity of a result. Default: no limit of its own.
	Age outside.Duration `yaml:"age"`
}

// Guard checks texts, by a model or by a moderation endpoint.
type Guard struct {
	// Its name, in events and errors. Default: guard.
	Name string `yaml:"name"`

	// What it checks: input (the user's messages), output (replies, which then do not stream) and
	// result (of tools). Default: all.
	Check []string `yaml:"check" enum:"input,output,result"`

	// The model that rules on each text, by rules.
	Model *Model `yaml:"model"`

	// The rules, in plain language: what to stop, and what to replace.
	Rules string `yaml:"rules"`

	// The moderation model in place of model and rules, such as openai:omni-moderation-latest. A
	// flagged text is stopped.
	Moderation *Model `yaml:"moderation"`

	// A text whose check fails: stop, or allow. Default: stop, and a result is withheld.
	OnError string `yaml:"on_error" enum:"stop,allow"`
}
