package pawl

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/pawl-go/pawl/internal/fit"
	"github.com/pawl-go/pawl/internal/jsonrepair"
)

// mend reads args, which check found wrong with faults or err, as the ones that were meant: it mends their syntax where that has one
// reading, and then what does not fit, where the schema leaves one reading. What comes out has passed check; where nothing fits,
// faults or err say what is wrong with what the model wrote.
func (s *schema) mend(args json.RawMessage, faults []fault, err error) (json.RawMessage, []string, []fault, error) {
	var repairs []string
	fixed := args
	if err != nil {
		text, notes, why := jsonrepair.Repair(args)
		if why != nil {
			return args, nil, nil, why
		}
		fixed, repairs = text, notes
		if faults, err = s.check(fixed); err == nil && len(faults) == 0 {
			return fixed, repairs, nil, nil
		}
		if err != nil {
			return args, nil, nil, err
		}
	}
	meant, notes, ok := fit.Coerce(s.full, fixed)
	if !ok {
		return args, nil, faults, nil
	}
	if left, err := s.check(meant); err != nil || len(left) > 0 {
		return args, nil, faults, nil
	}
	return meant, slices.Concat(repairs, notes), nil, nil
}

// meant returns args as the pipeline will read them: mended where they are.
func (t *Tool) meant(args json.RawMessage) json.RawMessage {
	s, err := t.schema()
	if err != nil || t.NoRepair || len(args) == 0 {
		return args
	}
	faults, err := s.check(args)
	if err == nil && len(faults) == 0 {
		return args
	}
	fixed, _, _, _ := s.mend(args, faults, err)
	return fixed
}

// example words the smallest arguments that fit for the model, or returns otherwise when none can be made.
func (s *schema) example(format, otherwise string) string {
	s.shown.once.Do(func() { s.shown.args = fit.Example(s.full) })
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
