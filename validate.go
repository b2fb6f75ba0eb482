package pawl

import (
	"encoding/json"
	"errors"
)

// Validate reports what is wrong with args as arguments of t, each field and what was expected there, in words that the
// model can use. It returns nil when a call with them would be carried out: they fit, or nearly fit and would be mended. Empty args
// stand for {}. It is for drivers that ask the model again before there is a call; the calls of a run are validated by the pipeline,
// whoever made them.
func (t *Tool) Validate(args json.RawMessage) error {
	p := pipe{task: &Task{scope: &scope{tools: []*Tool{t}}}}
	_, err := p.validate(ToolCall{Name: t.Name, Args: args}, true)
	var f *failure
	if errors.As(err, &f) {
		return errors.New(f.text)
	}
	return err
}
