package agentfile

import (
	"errors"
	"fmt"
	"strings"

	messages "github.com/pawl-go/pawl/internal/text"
)

// Code says what kind of thing a Finding is. The list is closed: Codes has all of them.
type Code string

// The codes.
const (
	CodeUnreadable      Code = "unreadable"       // the file cannot be read
	CodeSyntax          Code = "syntax"           // it is no YAML
	CodeTooLarge        Code = "too_large"        // it has too many bytes, values or documents
	CodeTooDeep         Code = "too_deep"         // its values are nested too deep, or form a cycle
	CodeEmpty           Code = "empty"            // there is no agent in it
	CodeUnknownKey      Code = "unknown_key"      // there is no such key
	CodeDuplicateKey    Code = "duplicate_key"    // a key stands twice
	CodeMissingKey      Code = "missing_key"      // a key that must be there is not
	CodeWrongType       Code = "wrong_type"       // a value of another kind
	CodeBadValue        Code = "bad_value"        // a value of the right kind that cannot be meant
	CodeConflict        Code = "conflict"         // two keys that exclude each other
	CodeMissingVariable Code = "missing_variable" // a variable that is not set and has no default
	CodeBadVariable     Code = "bad_variable"     // an invalid ${, or a variable not declared
	CodeUnknownTool     Code = "unknown_tool"     // no tool, and no set of tools, has the name
	CodeDuplicateTool   Code = "duplicate_tool"   // two tools of one name
	CodeBadTool         Code = "bad_tool"         // an invalid definition of a tool
	CodeUnknownServer   Code = "unknown_server"   // no MCP server has the name
	CodeBadServer       Code = "bad_server"       // an invalid MCP server
	CodeUnknownModel    Code = "unknown_model"    // an invalid model name or provider
	CodeUnknownWorker   Code = "unknown_worker"   // no worker has the name
	CodeUnknownResource Code = "unknown_resource" // no gateway, tool or subscriber has the name
	CodeUnknownType     Code = "unknown_type"     // an unknown type of planner, gateway or tool
	CodeDuplicateName   Code = "duplicate_name"   // two agents or resources of one name
	CodeBadFile         Code = "bad_file"         // a file is missing or has the wrong content
	CodeBadSchema       Code = "bad_schema"       // a JSON Schema that is none
	CodeRefused         Code = "refused"          // an unsupported key of agent.framework/v2
	CodeUnavailable     Code = "unavailable"      // something is not set up on this machine
	CodeReported        Code = "reported"         // a warning: a key has no effect, or another one
)

// Codes returns all codes.
func Codes() []Code {
	return []Code{
		CodeUnreadable, CodeSyntax, CodeTooLarge, CodeTooDeep, CodeEmpty,
		CodeUnknownKey, CodeDuplicateKey, CodeMissingKey, CodeWrongType, CodeBadValue, CodeConflict,
		CodeMissingVariable, CodeBadVariable,
		CodeUnknownTool, CodeDuplicateTool, CodeBadTool, CodeUnknownServer, CodeBadServer,
		CodeUnknownModel, CodeUnknownWorker, CodeUnknownResource, CodeUnknownType, CodeDuplicateName,
		CodeBadFile, CodeBadSchema, CodeRefused, CodeUnavailable, CodeReported,
	}
}

// Finding is a fault of an agent or, with CodeReported, a warning. It is an error.
type Finding struct {
	// Code says what kind of fault it is.
	Code Code

	// Path is the key of the Agent, such as "limits.cost" or "tools[1].http.url". Empty means the
	// whole agent.
	Path string

	File   string // name of the file; empty means that the value is in no file
	Line   int    // from 1; 0 means no particular line
	Column int    // from 1, in characters

	Message string // what is wrong
	Hint    string // what would be right; empty means no hint

	cause error // nil means none
}

// saysAs reports whether f says the same as g about the same place.
func (f *Finding) saysAs(g *Finding) bool {
	same := *g
	same.cause = f.cause
	return *f == same
}

// Unwrap returns the error behind the finding, such as one of package store, or nil.
func (f *Finding) Unwrap() error { return f.cause }

// because sets the error behind the finding.
func (f *Finding) because(err error) *Finding {
	f.cause = err
	return f
}

// Warning reports whether the agent works all the same.
func (f *Finding) Warning() bool { return f.Code == CodeReported }

// Error returns "FILE:LINE:COLUMN: message (hint)". A finding without a file begins with its path.
func (f *Finding) Error() string {
	var b strings.Builder
	switch {
	case f.File != "" && f.Line > 0:
		fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
	case f.File != "":
		b.WriteString(f.File + ": ")
	case f.Path != "":
		b.WriteString(f.Path + ": ")
	}
	if f.Warning() {
		b.WriteString("warning: ")
	}
	b.WriteString(f.Message)
	if f.Hint != "" {
		b.WriteString(" (" + f.Hint + ")")
	}
	return b.String()
}

// Findings are several of them, as an error.
type Findings []*Finding

// Error returns a line for each.
func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i, one := range f {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns them one by one.
func (f Findings) Unwrap() []error {
	all := make([]error, len(f))
	for i, one := range f {
		all[i] = one
	}
	return all
}

// err returns the findings that are no warnings as an error, or nil.
func (f Findings) err() error {
	var bad Findings
	for _, one := range f {
		if !one.Warning() {
			bad = append(bad, one)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return bad
}

// FindingsOf returns the findings that err consists of; nil when it is another error.
func FindingsOf(err error) Findings {
	var many Findings
	var one *Finding
	switch {
	case errors.As(err, &many):
		return many
	case errors.As(err, &one):
		return Findings{one}
	}
	return nil
}

func finding(code Code, path, hint, format string, args ...any) *Finding {
	return &Finding{Code: code, Path: path, Hint: hint, Message: fmt.Sprintf(format, args...)}
}

// cut shortens a text that is shown.
func cut(s string) string { return messages.Clip(s, 40) }
