package advice_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/internal/advice"
)

// The parts of an error are the parts of its value, through errors around it. An error of another
// type is its text.
func TestParts(t *testing.T) {
	for name, c := range map[string]struct {
		err                 error
		text, message, hint string
	}{
		"both":     {advice.New("a; b", "c"), "a; b; c", "a; b", "c"},
		"no hint":  {advice.New("a", ""), "a", "a", ""},
		"a joint":  {&advice.Error{Message: "a", Joint: ", ", Hint: "such as b"}, "a, such as b", "a", "such as b"},
		"wrapped":  {fmt.Errorf("rules: %w", advice.New("a", "b")), "rules: a; b", "a", "b"},
		"joined":   {errors.Join(errors.New("x"), advice.New("a", "b")), "x\na; b", "a", "b"},
		"no value": {errors.New("a; b"), "a; b", "a; b", ""},
	} {
		message, hint := advice.Parts(c.err)
		if c.err.Error() != c.text || message != c.message || hint != c.hint {
			t.Errorf("%s: %q has %q, %q; want %q, %q, %q", name, c.err, message, hint, c.text, c.message, c.hint)
		}
	}
}
