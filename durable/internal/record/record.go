// Package record has the records of a run: their forms in a journal, and the history that they add
// up to. It executes nothing and shows nothing: package durable stores and replays records, and
// package journal reads them.
package record

// record.go: the kinds of records, and their forms.

import (
	"encoding/json"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
)

// The kinds of records, with their keys.
const (
	KindBegin = "begin" // begin: the input of the run
	// KEY/tools: the tools of the run with that key. KEY/tools/N: the tools that its request N adds
	// (Tool.Deferred).
	KindTools = "tools"
	KindReply = "reply" // KEY of the request: the model's reply
	// KEY of the request/background/N: the reply that the provider computes in the background
	KindBackground = "background"
	// KEY/intent/N: attempt N of the call at KEY may have an effect from now on
	KindIntent   = "intent"
	KindOutcome  = "outcome"  // KEY: the outcome of the call
	KindQuestion = "question" // KEY/question/N: the pending question of the call
	// KEY/question/N/decision: the answer; after it KEY/question/N/decision/M, if the answer before
	// expired
	KindDecision = "decision"
	KindSteer    = "steer"    // KEY of the request/steer: the messages that it received
	KindMessage  = "message"  // message/ID: sent from outside, not received yet
	KindCancel   = "cancel"   // cancel: the run is to be cancelled
	KindAccept   = "accept"   // accept/FENCE: accepted changes of tools
	KindTrace    = "trace"    // trace/FENCE: the position of the attempt in a trace
	KindRestored = "restored" // restored/ID: the database was restored from a backup
	KindReopened = "reopened" // reopened/FENCE: a person let a failed run go on
	KindEnd      = "end"      // end/FENCE: the reason of a stop, temporary or final
)

// FormVersion is the version of the form of records. A journal with another version is rejected.
const FormVersion = 1

// Begin is the start of a run.
type Begin struct {
	State    int             `json:"state"`
	Agent    string          `json:"agent,omitzero"`
	Unnamed  bool            `json:"unnamed,omitzero"` // an Agent without a name has begun the run
	Messages json.RawMessage `json:"messages"`
	// The Result that the run resumes from; nil means none.
	From json.RawMessage `json:"from,omitzero"`
	// Answered means that the open calls of Messages get error results. Journals of earlier
	// versions do not have it: their runs executed these calls.
	Answered bool            `json:"answered,omitzero"`
	Meta     json.RawMessage `json:"meta,omitzero"`

	ForkedFrom *Origin `json:"forked_from,omitzero"` // nil means no fork
	// Marked is the field of Program for the copied part of a fork.
	Marked map[string]json.RawMessage `json:"marked,omitzero"`
}

// Origin is the source of a fork: see journal.Origin.
type Origin struct {
	Run   string `json:"run"`
	Steps int    `json:"steps"` // the number of copied steps
	// Trace is the position of the original run in a trace, in the form of the W3C (package
	// telemetry). Empty means unknown.
	Trace string `json:"trace,omitzero"`
}

// Background identifies a reply that the provider computes.
type Background struct {
	Messages   string       `json:"messages"` // as in Reply
	Request    string       `json:"request"`  // as in Reply
	Background llm.Opaque   `json:"background"`
	Number     int          `json:"n"`             // from 1; the last one counts
	Sent       *SentRequest `json:"sent,omitzero"` // as in Reply
}

// Intent says that an attempt of a call may have an effect from now on: it is about to start, or to
// send (pawl.Tool.StatesSending).
type Intent struct {
	Asked    llm.ToolCall  `json:"asked"` // as made by the model, or by the call around it
	Call     llm.ToolCall  `json:"call"`
	Effect   pawl.Effect   `json:"effect"` // Effect.Assumed of the tool
	Tool     string        `json:"tool"`   // digest
	Key      string        `json:"idempotency_key"`
	Decision *llm.Decision `json:"decision,omitzero"`
}

// Outcome is the outcome of a call that has ended.
type Outcome struct {
	Call      llm.ToolCall   `json:"call"` // as made by the model
	Execution pawl.Execution `json:"execution"`
	// Effect of a call that started without an intent: EffectRead or EffectPure. The zero value
	// means that the call has an intent, or that it did not start.
	Effect pawl.Effect `json:"effect,omitzero"`
}

// Messages are messages that a request received, or that were sent from outside.
type Messages struct {
	Messages []llm.Message `json:"messages"`
	From     []string      `json:"from,omitzero"` // keys of the received messages from outside
}

// Acceptance replaces the definitions of a run by the definitions of another program.
type Acceptance struct {
	Run   string   `json:"run"`
	Names []string `json:"names"`
	// Program has all current tools. A new Agent means that the earlier requests are not compared
	// any more.
	Program
}

// Trace is the position of an attempt in a trace.
type Trace struct {
	Traceparent string `json:"traceparent"` // in the form of the W3C
}

// End is the reason of a stop.
type End struct {
	Stop        pawl.StopReason    `json:"stop"`
	Limit       pawl.LimitName     `json:"limit,omitzero"`
	Cause       string             `json:"cause,omitzero"`
	Interrupted string             `json:"interrupted,omitzero"` // Result.Interrupted
	Unfit       []string           `json:"unfit,omitzero"`       // Result.Unfit
	Error       string             `json:"error,omitzero"`
	Spent       pawl.Spent         `json:"spent"`
	Pending     []pawl.PendingCall `json:"pending,omitzero"`
	Values      pawl.Values        `json:"values,omitzero"`
	Output      json.RawMessage    `json:"output,omitzero"`
	Answer      *pawl.Answer       `json:"answer,omitzero"`
	// Failed has the requests without a stored reply of this attempt, by Request.Key.
	Failed map[llm.Key]Failure `json:"failed,omitzero"`
	// Waiting is set if the run waits for a provider. Nil means that it does not.
	Waiting *Waiting `json:"waiting,omitzero"`
}

// Reopened is the body of a KindReopened.
type Reopened struct {
	By string `json:"by,omitzero"` // who let it go on; "" means unknown
}

// Waiting is how long a run has waited for a provider.
type Waiting struct {
	Since time.Time `json:"since"` // the first request that failed
	Tries int       `json:"tries"` // the attempts since then
}

// Attempt is an attempt of a call.
type Attempt struct {
	Seq int64 // of the record
	Intent
}

// Incoming is what one record has of messages that were sent from outside.
type Incoming struct {
	Key  string // of the record
	Body Messages
}
