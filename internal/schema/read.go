package pawl

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/internal/fit"
	"github.com/pawl-go/pawl/internal/jsonrepair"
)

// read checks args, and returns them as they are, or with mending as what they were meant to be if they can mean one thing only: their
// syntax is mended, then what does not fit is read as what the schema wants. What comes out has passed the full check. Where it
// has not, faults or err say what is wrong with what the model wrote.
func (s *schema) read(args json.RawMessage, mending bool) (fixed json.RawMessage, repairs []string, faults []fault, err error) {
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

func (s *schema) fits(args json.RawMessage) bool {
	faults, err := s.check(args)
	return err == nil && len(faults) == 0
}

// meant returns args as a call of t would be run with them.
func (t *Tool) meant(args json.RawMessage) json.RawMessage {
	if s, err := t.schema(); err == nil && !t.NoRepair && len(args) > 0 {
		args, _, _, _ = s.read(args, true)
	}
	return args
}

// example words the smallest arguments that fit for the model, or returns otherwise when none can be made.
func (s *schema) example(format, otherwise string) string {
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
