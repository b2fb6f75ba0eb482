package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/internal/jsonrepair"
	"github.com/pawl-go/pawl/internal/jsonscan"
	"github.com/pawl-go/pawl/internal/schema/fit"
	"github.com/pawl-go/pawl/internal/text"
)

// Read checks args and returns them unchanged if they fit. With mending, it repairs arguments that
// can mean only one thing: first their syntax, then the values that do not fit. Repaired arguments
// have passed the full check. Otherwise faults or err describe the faults of the original
// arguments.
func (s *Schema) Read(ctx context.Context, args json.RawMessage, mending bool) (fixed json.RawMessage,
	repairs []string, faults []Fault, err error) {
	// Schemas do not see it, and many programs to which a tool sends its arguments refuse it.
	if mending && jsonscan.HasLoneEscape(args) {
		args = jsonscan.PairEscapes(args)
		repairs = []string{"replaced half of a UTF-16 pair by U+FFFD"}
	}

	e := newEffort(ctx, len(args))
	faults, err = s.check(e, args)
	fits := err == nil && len(faults) == 0
	if fits {
		return args, repairs, nil, nil
	}
	if !mending || e.over {
		return args, nil, faults, err
	}

	// The syntax first, because values can be read only in a JSON text.
	fixed = args
	if err != nil {
		var more []string
		fixed, more, err = jsonrepair.Repair(args)
		if err != nil {
			return args, nil, nil, err
		}
		repairs = slices.Concat(repairs, more)
		faults, err = s.check(e, fixed)
		if err != nil {
			return args, nil, nil, err
		}
		if len(faults) == 0 {
			return fixed, repairs, nil, nil
		}
	}
	if s.any {
		return args, nil, faults, nil
	}

	var meant []byte
	var notes []string
	ok := false
	err = s.meter.run(e, func() { meant, notes, ok = fit.Coerce(s.full, fixed, e.spend) })
	if err == nil && ok && s.fits(e, meant) {
		return meant, slices.Concat(repairs, notes), nil, nil
	}
	return args, nil, faults, nil
}

func (s *Schema) fits(e *effort, args json.RawMessage) bool {
	faults, err := s.check(e, args)
	return err == nil && len(faults) == 0
}

// Arguments checks the arguments of a call to tool and returns them. It repairs arguments that do
// not fit and can mean only one thing, if repair is set. Empty args count as {}. repairs lists the
// repairs. If the arguments are rejected, refusal says why in words for the model, and args are
// returned unchanged.
func (s *Schema) Arguments(ctx context.Context, tool string, args json.RawMessage, repair bool) (fixed json.RawMessage,
	repairs []string, refusal string) {
	const hint = "\nArguments of the right form, with your own values: %s"
	empty := saysNothing(args)
	if empty {
		args = json.RawMessage("{}") // valid only if the schema allows it
	}

	// Nothing is invented for a call without arguments.
	fixed, repairs, faults, err := s.Read(ctx, args, repair && !empty)
	switch {
	case err != nil:
		refusal = fmt.Sprintf("The arguments of %s are not valid JSON: %s. "+
			"Send one JSON object that fits the tool's schema%s You sent: %s",
			tool, SyntaxText(err), s.Example(", for example: %s.", "."), text.Clip(string(args), 200))
	case len(faults) == 0:
		return fixed, repairs, ""
	case empty:
		refusal = fmt.Sprintf("The call of %s has no arguments, but it needs them:%s%s",
			tool, Message(faults), s.Example(hint, ""))
	default:
		refusal = fmt.Sprintf("The arguments of %s do not fit its schema:%s%s",
			tool, Message(faults), s.Example(hint, ""))
	}
	return args, nil, refusal
}

// saysNothing reports whether args are a form of no arguments: nothing, null, or a text with
// either. Servers write null for a call without arguments, and some write it as text.
func saysNothing(args []byte) bool {
	switch string(bytes.TrimSpace(args)) {
	case "", "null", `""`, `"null"`:
		return true
	}
	return false
}

// SyntaxText describes why text is not JSON, without the name of the decoder.
func SyntaxText(err error) string {
	if se, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Sprintf("%s at byte %d", se.Error(), se.Offset)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return "it ends too early"
	}
	return err.Error()
}

// Example formats the smallest arguments that fit, for the model. It returns otherwise if there is
// no example.
func (s *Schema) Example(format, otherwise string) string {
	s.shown.once.Do(func() {
		e := newEffort(context.Background(), 0)
		// An error means no example.
		_ = s.meter.run(e, func() { s.shown.args = fit.Example(s.full, e.spend) })
	})
	if len(s.shown.args) <= len("{}") {
		return otherwise
	}
	return fmt.Sprintf(format, s.shown.args)
}

// shown is the example of a schema, made at first use.
type shown struct {
	once sync.Once
	args []byte
}
