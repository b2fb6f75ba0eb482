// Package trial is what is kept of a trial of an evaluation: plain data, which a line of
// trials.jsonl has, so that checks judge a trial again without a request and without a tool.
package trial

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl/llm"
)

// Record is a trial that has ended.
type Record struct {
	// Case and Variant are names of the suite, and Number counts their trials from 1.
	Case    string `json:"case"`
	Variant string `json:"variant"`
	Number  int    `json:"number"`

	// Digest is the digest of the content of the case.
	Digest string `json:"digest"`

	// Run is the ID of the durable run. Empty means that there was none.
	Run string `json:"run,omitzero"`

	// Input is what the user said.
	Input string `json:"input,omitzero"`

	// Stop, Limit and Cause say why the run stopped.
	Stop  string `json:"stop,omitzero"`
	Limit string `json:"limit,omitzero"`
	Cause string `json:"cause,omitzero"`

	// Answer is the text of the answer, and Output its JSON. Nil means no output.
	Answer string          `json:"answer,omitzero"`
	Output json.RawMessage `json:"output,omitzero"`

	// Calls are all calls, in the order of the run. A nested call follows the call around it.
	Calls []Call `json:"calls,omitzero"`

	// Asked are the calls that waited for a person.
	Asked []Question `json:"asked,omitzero"`

	// Before and After are the files of the world, by path.
	Before map[string]File `json:"before,omitzero"`
	After  map[string]File `json:"after,omitzero"`

	// Misses are calls of faked tools that no line of the world answers.
	Misses []string `json:"misses,omitzero"`

	// Spent is what the trial used.
	Spent Spent `json:"spent"`

	// Wasted is the cost of the attempts before the last one, in US dollars.
	Wasted float64 `json:"wasted,omitzero"`

	// Attempts is how often the trial was begun.
	Attempts int `json:"attempts,omitzero"`

	// Hidden are values that no file and no output may show. They are not stored.
	Hidden []string `json:"-"`

	// Verdict, Score, and what the checks say.
	Verdict string   `json:"verdict"`
	Score   float64  `json:"score"`
	Checks  []Result `json:"checks,omitzero"`

	// Code and Error say why there is no verdict of the checks. Empty means that there is.
	Code  string `json:"code,omitzero"`
	Error string `json:"error,omitzero"`
}

// The verdicts of a trial.
const (
	Pass    = "pass"    // every gating check passed
	Fail    = "fail"    // one did not
	Error   = "error"   // it could not be judged
	Skipped = "skipped" // it did not run, or was cut by the end of the eval
)

// Silent returns the record of a run that says and does nothing, and costs nothing.
func Silent() Record {
	free := 0.0
	return Record{Stop: "answer", Spent: Spent{Cost: &free}}
}

// Judged reports whether the trial counts in rates.
func (r *Record) Judged() bool { return r.Verdict == Pass || r.Verdict == Fail }

// Call is a call of a run.
type Call struct {
	// Key is its place in the run. It is not stored.
	Key llm.Key `json:"-"`

	// Tool is the name of the tool.
	Tool string `json:"tool"`

	// Args are the arguments: as the tool got them, or as the model wrote them.
	Args json.RawMessage `json:"args,omitzero"`

	// Result is the text that the model read.
	Result string `json:"result,omitzero"`

	// Outcome is how the call ended, by the words of pawl.Outcome.
	Outcome string `json:"outcome"`

	// Effect is what the tool may do, by the words of pawl.Effect. Empty means unstated.
	Effect string `json:"effect,omitzero"`

	// State is how far its effect is known to be, by the words of the ledger. Empty means that the
	// call has no effect.
	State string `json:"state,omitzero"`

	// Depth is 0 for a call of the agent itself, and more within another call.
	Depth int `json:"depth,omitzero"`
}

// Writes reports whether the call may change the world.
func (c *Call) Writes() bool {
	switch c.Effect {
	case "read", "pure", "compose":
		return false
	}
	return true
}

// Question is a call that waited for a person.
type Question struct {
	// Tool and Args are of the call.
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args,omitzero"`

	// Answer is what the suite answered: approve, deny, edit or answer. Empty means nothing.
	Answer string `json:"answer,omitzero"`
}

// File is a file of a world.
type File struct {
	// SHA256 is the digest of the content, in hexadecimal digits.
	SHA256 string `json:"sha256"`

	// Text is the content of a text of at most 64 KiB. Nil means that only the digest is kept.
	Text *string `json:"text,omitzero"`
}

// Digest returns the digest of a content as File has it.
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Spent is what a trial used.
type Spent struct {
	// Cost is in US dollars. Nil means that it is unknown.
	Cost *float64 `json:"cost,omitzero"`

	// Time is the time of models and tools, without the time of answers.
	Time time.Duration `json:"time_ns"`

	// The counts of the run, as in pawl.Spent.
	Rounds      int `json:"rounds"`
	Requests    int `json:"requests"`
	Calls       int `json:"calls"`
	Input       int `json:"input"`
	Output      int `json:"output"`
	Corrections int `json:"corrections,omitzero"`

	// Invalid is the number of calls whose arguments were rejected.
	Invalid int `json:"invalid,omitzero"`

	// Repairs is the number of repairs of arguments and of the answer.
	Repairs int `json:"repairs,omitzero"`
}

// Result is what a check says of a trial.
type Result struct {
	// Name is the name of the check in the suite, or its kind.
	Name string `json:"name"`

	// Pass is true if the trial passes.
	Pass bool `json:"pass"`

	// Gates is true for a check that decides the verdict.
	Gates bool `json:"gates"`

	// Reason says why the trial does not pass.
	Reason string `json:"reason,omitzero"`

	// Error says why the check could not judge. Empty means that it could.
	Error string `json:"error,omitzero"`

	// F1 is the harmonic mean of the shares of expected and of made calls. Nil means that the check
	// expects no calls.
	F1 *float64 `json:"f1,omitzero"`
}
