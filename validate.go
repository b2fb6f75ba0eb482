package pawl

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Validate reports what is wrong with args as arguments of t, each field and what was expected there, in words that the
// model can use; nil when they fit. Empty args stand for {}. It is for drivers that ask the model again before there is a call: calls of a
// run are validated by the pipeline, whoever made them.
func (t *Tool) Validate(args json.RawMessage) error {
	p := pipe{task: &Task{scope: &scope{tools: []*Tool{t}}}}
	if len(bytes.TrimSpace(args)) == 0 {
		args = nil
	}
	_, err := p.validate(ToolCall{Name: t.Name, Args: args})
	var f *failure
	if errors.As(err, &f) {
		return errors.New(f.text)
	}
	return err
}
