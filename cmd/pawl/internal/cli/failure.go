package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/provider"
	"github.com/pawl-go/pawl/store"
)

// The exit statuses. They are part of the contract of the command.
const (
	statusAnswered = 0 // success: the run has an answer, or the command did its work
	// the run failed or stalled, or the called tool returned an error
	StatusFailed      = 1
	StatusUsage       = 2   // the command line, a file or the configuration is wrong
	StatusPending     = 3   // calls need a decision or a result
	StatusLimit       = 4   // a limit ended the run, with or without an answer
	StatusStorage     = 5   // the database is not available: its disk, its lock, or its server
	StatusClosed      = 141 // the reader of the output closed it; the status of SIGPIPE
	StatusInterrupted = 130 // the run was interrupted; shells use the same status for Ctrl-C
)

// Failure is an error with an exit status and a hint.
type Failure struct {
	Status int
	Err    error  // nil means that the error is already reported
	Hint   string // what the person can do about it; "" means no hint
}

// Error returns the text of the error, or the exit status when all has been reported.
func (f *Failure) Error() string {
	if f.Err == nil {
		return fmt.Sprintf("exit status %d", f.Status)
	}
	return f.Err.Error()
}

// Unwrap returns the error, for errors.Is and errors.As. It may be nil.
func (f *Failure) Unwrap() error { return f.Err }

// Usage returns a failure of the command line, a file or the configuration, with status 2. hint is
// a correct form; "" means no hint.
func Usage(hint, format string, args ...any) error {
	return Fail(StatusUsage, fmt.Errorf(format, args...), hint)
}

// Report writes err and its hint to w, and returns the exit status. A nil err means status 0. The
// text may come from a provider or a tool, so Report writes it through Visible.
func Report(w io.Writer, err error) int {
	if err == nil {
		return statusAnswered
	}
	var f *Failure
	if !errors.As(err, &f) {
		f = &Failure{Status: StatusFailed, Err: err}
	}
	// Scripts wait and try again at this status, wherever the database was missed.
	if f.Status != StatusStorage && errors.Is(f.Err, store.ErrUnavailable) {
		f = &Failure{Status: StatusStorage, Err: f.Err, Hint: StorageHint}
	}

	if f.Err != nil {
		fmt.Fprintf(w, "pawl: error: %s\n", Indented(Visible(f.Err.Error())))
	}
	if f.Hint != "" {
		fmt.Fprintf(w, "pawl: hint: %s\n", Indented(Visible(f.Hint)))
	}
	return f.Status
}

// StorageHint is the hint for a database that is not available.
const StorageHint = "the storage of the database failed: free space on its disk, end the process that holds it, " +
	"or wait for its server; to check this machine: pawl doctor"

// NotBegun returns the failure of a run that did not reach its first step. Its status is 2, because
// an input of the run is wrong.
func NotBegun(err error) error {
	err = Failed(err)
	var f *Failure
	if errors.As(err, &f) {
		f.Status = StatusUsage
	}
	return err
}

// Failed returns the failure of a run that ended with err. A configuration that cannot work has
// status 2, a failed run has status 1.
func Failed(err error) error {
	var (
		failure      *Failure
		output       *pawl.OutputError
		transcript   *pawl.TranscriptError
		tool         *pawl.ToolError
		fromProvider *llm.ProviderError
	)
	// A failure that has a status already keeps it, also if it wraps an error of these kinds.
	switch {
	case err == nil, errors.As(err, &failure):
		return err
	case errors.Is(err, store.ErrUnavailable):
		return Fail(StatusStorage, err, StorageHint)
	case errors.As(err, &output):
		return Fail(StatusFailed, err, "the answer was: "+Line(output.Text, 200)+
			"; another model may fit it: pawl models list")
	case errors.As(err, &transcript):
		return Fail(StatusUsage, err, "the messages do not form a valid conversation; "+
			"correct the file, or start without --messages: pawl chat")
	case errors.As(err, &tool):
		return Fail(StatusFailed, err, "the tool ended the run; "+
			"to save the messages before it: pawl run --save run.json TASK")
	case !errors.As(err, &fromProvider):
		return Fail(StatusFailed, err, "to check the setup of this machine: pawl doctor")
	}

	failed := ofProvider(fromProvider)
	failed.Err = err // with all errors, if several models failed
	if strings.HasSuffix(err.Error(), fromProvider.Error()) {
		failed.Err = fromProvider // without the step, which the display of the run already shows
	}
	return failed
}

// providerHints holds the exit status and the hint for the errors of a provider. Other errors may
// be temporary.
var providerHints = map[llm.Code]Failure{
	llm.CodePermission: {
		Status: StatusUsage,
		Hint:   "this key has no access to the model; to list others: pawl models list",
	},
	llm.CodeNotFound: {
		Status: StatusUsage,
		Hint: "the server has no such model, or has another --base-url, " +
			"which usually ends in /v1; to list names: pawl models list",
	},
	llm.CodeUnsupported: {
		Status: StatusUsage,
		Hint:   "to see what models support: pawl models list",
	},
	llm.CodeInvalidRequest: {
		Status: StatusFailed,
		Hint:   "to record the request: pawl run --record sent.json TASK",
	},
	llm.CodeContextLength: {
		Status: StatusFailed,
		Hint: "the conversation is too long for the model; start a new one, " +
			"choose a model with a larger context window, or put old results away: " +
			"history: window in the agent's file, its default, " +
			"with window: {tokens: N} if the window is not in pawl models list",
	},
	llm.CodeContentFilter: {
		Status: StatusFailed,
		Hint:   "the provider refused the content; rephrase it, or use another model: pawl models list",
	},
	llm.CodeQuota: {
		Status: StatusFailed,
		Hint:   "the quota of this key is used up; other providers: pawl models list",
	},
	llm.CodeNetwork: {
		Status: StatusFailed,
		Hint: "check that the server runs, and set its address with --base-url; " +
			"to see what can be reached from here: pawl doctor",
	},
}

// ofProvider returns the exit status and the hint for an error of a provider.
func ofProvider(p *llm.ProviderError) *Failure {
	f, known := providerHints[p.Code]
	sent := p.Status != 0
	variables := strings.Join(provider.KeyVariables(p.Provider), " or ")

	// An adapter that refuses a request itself has seen a fault of the flags, and no server has.
	switch {
	case p.Code == llm.CodeAuthentication && sent:
		f.Status = StatusUsage
		f.Hint = "the key is wrong or missing: it is the variable that key_env " +
			"in the file or --key-env names, else " + variables + ", which is sent only to its provider; " +
			"to see which keys are set: pawl doctor"
	case p.Code == llm.CodeAuthentication:
		f.Status = StatusUsage
		f.Hint = "set the key in " + variables + ", in one line" + keyPage(p.Provider) + "; for another " +
			"--base-url name its variable with --key-env NAME; " +
			"without a key: --model ollama:NAME on this machine, or --model demo:minimal, which follows rules; " +
			"to see which keys are set: pawl doctor"
	case p.Code == llm.CodeInvalidRequest && !sent:
		f.Status = StatusUsage
		f.Hint = "the request was not sent; correct the flag, or the key of the file, " +
			"that the error names: pawl run --help"
	case !known:
		f.Status = StatusFailed
		f.Hint = "the same command may succeed later; --save stores an interrupted run, " +
			"and this resumes it: pawl run --messages FILE"
	}
	return &f
}

// keyPage returns where a key of a provider comes from, as a part of a hint.
func keyPage(name string) string {
	p, _ := provider.Find(name)
	if p.KeyPage == "" {
		return ""
	}
	return " (" + p.KeyPage + " has keys)"
}

// Fail returns a failure. hint says what the person can do; "" means no hint.
func Fail(status int, err error, hint string) error { return &Failure{status, err, hint} }

// Silent returns a failure that Report does not print, because everything has been reported.
func Silent(status int) error { return &Failure{Status: status} }
