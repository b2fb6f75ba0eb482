package outside

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/caller"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// identity.go: requests in the name of the caller of a run. They fail closed: without the
// credential nothing is sent.

// callerPlace matches ${caller.token} and ${caller.name}.
var callerPlace = regexp.MustCompile(`\$\{caller\.([^}]*)\}`)

// callerArgument is the argument that stands for a field of the caller in a template. No argument
// of a model has such a name.
func callerArgument(field string) string { return "${caller." + field + "}" }

// namesCaller reports whether a header of d stands for the caller of a run.
func (d *Definition) namesCaller() bool {
	var headers map[string]string
	switch {
	case d.HTTP != nil:
		headers = d.HTTP.Headers
	case d.OpenAPI != nil:
		headers = d.OpenAPI.Headers
	case d.A2A != nil:
		headers = d.A2A.Headers
	}
	for _, value := range headers {
		if callerPlace.MatchString(value) {
			return true
		}
	}
	return false
}

// identity adds to requests what belongs to the caller of a run.
type identity struct {
	fields []string // of the caller, in headers of the definition

	// header is Options.Header; nil means none.
	header func(ctx context.Context) (http.Header, error)
}

// errNoCaller is the refusal of a call that acts for a caller.
func errNoCaller(field string) error {
	return fmt.Errorf("the call was refused and nothing was sent: it acts in the name of the caller of this run, "+
		"and there is no caller with a %s", field)
}

// values returns the fields of the caller that the definition uses, as arguments.
func (i identity) values(ctx context.Context) (map[string]any, error) {
	if len(i.fields) == 0 {
		return nil, nil
	}
	c, _ := caller.From(ctx)
	values := map[string]any{}
	for _, field := range i.fields {
		value, _ := c.Field(field)
		if strings.TrimSpace(value) == "" {
			return nil, errNoCaller(field)
		}
		if _, err := inHeader("", value); err != nil {
			return nil, errors.New("the call was refused and nothing was sent: the " + field +
				" of its caller has a character that is not allowed in a header")
		}
		values[callerArgument(field)] = value
	}
	return values, nil
}

// apply sets the headers of Options.Header, and returns the values in them.
func (i identity) apply(ctx context.Context, h http.Header) (secrets []string, err error) {
	if i.header == nil {
		return nil, nil
	}
	own, err := i.header(ctx)
	if err != nil {
		return nil, fmt.Errorf("the call was refused and nothing was sent: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		key := http.CanonicalHeaderKey(name)
		if !canSet(key) {
			return nil, fmt.Errorf("the call was refused and nothing was sent: the header %s cannot be set", key)
		}
		h[key] = own[name]
		secrets = append(secrets, own[name]...)
	}
	return secrets, nil
}

// leastSecret is the shortest value that is hidden. A shorter one would match everywhere.
const leastSecret = 8

// hider returns what replaces credentials in texts. nil means that there are none.
func hider(secrets []string) *strings.Replacer {
	var pairs []string
	for _, s := range secrets {
		// A server may repeat the token of "Bearer TOKEN" alone.
		for _, word := range append(strings.Fields(s), s) {
			if len(word) >= leastSecret {
				pairs = append(pairs, word, "[redacted]")
			}
		}
	}
	if len(pairs) == 0 {
		return nil
	}
	return strings.NewReplacer(pairs...)
}

// hide replaces credentials in what a server answered, for a server that repeats its request.
func hide(res llm.ToolResult, secrets []string) llm.ToolResult {
	r := hider(secrets)
	if r == nil {
		return res
	}
	res.Parts = slices.Clone(res.Parts)
	for i, p := range res.Parts {
		if t, ok := p.(llm.Text); ok {
			t.Text = r.Replace(t.Text)
			res.Parts[i] = t
		}
	}
	if res.Data != nil {
		res.Data = []byte(r.Replace(string(res.Data)))
	}
	return res
}

// hideIn replaces credentials in what a server answered with the error of a call: its result, its
// cause, and an answer that does not fit.
func hideIn(err error, secrets []string) error {
	r := hider(secrets)
	failed, ok := errors.AsType[*delivery.Error](err)
	if r == nil || !ok {
		return err
	}

	own := *failed
	own.Result = hide(own.Result, secrets)
	unfit, isUnfit := errors.AsType[*pawl.OutputError](own.Err)
	switch {
	case isUnfit:
		hidden := &pawl.OutputError{Text: r.Replace(unfit.Text)}
		for _, fault := range unfit.Faults {
			hidden.Faults = append(hidden.Faults, r.Replace(fault))
		}
		own.Err = hidden
	case own.Err != nil:
		own.Err = &reworded{own.Err, r.Replace(own.Err.Error())}
	}
	return &own
}

// reworded is an error with another text.
type reworded struct {
	error
	text string
}

// Error returns the other text.
func (e *reworded) Error() string { return e.text }

// Unwrap returns the error, for errors.Is and errors.As.
func (e *reworded) Unwrap() error { return e.error }
