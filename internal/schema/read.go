package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/internal/jsonrepair"
	"github.com/pawl-go/pawl/internal/schema/fit"
	"github.com/pawl-go/pawl/internal/text"
)

// Read checks args, and returns them as they are, or with mending as what they were meant to be if they can mean one thing only: their
// syntax is mended, then what does not fit is read as what the schema wants. What comes out has passed the full check. Where it
// has not, faults or err say what is wrong with what the model wrote.
func (s *Schema) Read(args json.RawMessage, mending bool) (fixed json.RawMessage, repairs []string, faults []Fault, err error) {
	if faults, err = s.check(args); !mending || err == nil && len(faults) == 0 {
		return args, nil, faults, err
	}
	fixed = args
	if err != nil {
		if fixed, repairs, err = jsonrepair.Repair(args); err != nil {
			return args, nil, nil, err
		}
		if faults, err = s.check(fixed); err != nil {
			return args, nil, nil, err
		}
		if len(faults) == 0 {
			return fixed, repairs, nil, nil
		}
	}
	var meant []byte
	var notes []string
	ok := false
	if s.meter.run(len(fixed), func() { meant, notes, ok = fit.Coerce(s.full, fixed) }) && ok && !s.any && s.fits(meant) {
		return meant, slices.Concat(repairs, notes), nil, nil
	}
	return args, nil, faults, nil
}

func (s *Schema) fits(args json.RawMessage) bool {
	faults, err := s.check(args)
	return err == nil && len(faults) == 0
}

// Arguments checks the arguments of a call to tool and returns them, repaired if repair is set, they
// do not fit and they can mean only one thing. Empty args stand for {}. Repairs names what was
// repaired. If the arguments are refused, refusal says why in words for the model, and args are
// returned as they were.
func (s *Schema) Arguments(tool string, args json.RawMessage, repair bool) (fixed json.RawMessage, repairs []string, refusal string) {
	const hint = "\nArguments of the right form, with your own values: %s"
	empty := len(bytes.TrimSpace(args)) == 0
	if empty {
		args = json.RawMessage("{}") // valid only if the schema allows it
	}
	fixed, repairs, faults, err := s.Read(args, repair && !empty)
	switch {
	case err != nil:
		refusal = fmt.Sprintf("The arguments of %s are not valid JSON: %s. Send one JSON object that fits the tool's schema%s You sent: %s",
			tool, SyntaxText(err), s.Example(", for example: %s.", "."), text.Clip(string(args), 200))
	case len(faults) == 0:
		return fixed, repairs, ""
	case empty:
		refusal = fmt.Sprintf("The call of %s has no arguments, but it needs them:%s%s", tool, Message(faults), s.Example(hint, ""))
	default:
		refusal = fmt.Sprintf("The arguments of %s do not fit its schema:%s%s", tool, Message(faults), s.Example(hint, ""))
	}
	return args, nil, refusal
}

// SyntaxText says what is wrong with text that is not JSON, without the decoder's name.
func SyntaxText(err error) string {
	var se *json.SyntaxError
	if errors.As(err, &se) {
		return fmt.Sprintf("%s at byte %d", se.Error(), se.Offset)
	}
	if err.Error() == "unexpected EOF" || err.Error() == "EOF" {
		return "it ends too early"
	}
	return err.Error()
}

// Example words the smallest arguments that fit for the model, or returns otherwise when none can be made.
func (s *Schema) Example(format, otherwise string) string {
	s.shown.once.Do(func() { s.meter.run(0, func() { s.shown.args = fit.Example(s.full) }) })
	if len(s.shown.args) <= len("{}") {
		return otherwise
	}
	return fmt.Sprintf(format, s.shown.args)
}

// shown is the example of a schema, made when it is first needed.
type shown struct {
	once sync.Once
	args []byte
}
