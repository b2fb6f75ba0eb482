package openai

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/pawl-go/pawl/internal/jsonscan"
)

// fromSchema returns the schema on one line, with the properties that OpenAI asks of every object of arguments.
func fromSchema(schema json.RawMessage) ([]byte, error) {
	if len(schema) == 0 {
		return []byte(`{"type":"object","properties":{}}`), nil
	}
	var b bytes.Buffer
	if err := json.Compact(&b, schema); err != nil {
		return nil, err
	}
	out := b.Bytes()
	c := jsonscan.New(out)
	members := 0
	if !c.Object() {
		return nil, errors.New("the schema is not a JSON object")
	}
	for k, ok := c.Key(); ok; k, ok = c.Key() {
		members++
		switch string(k) {
		case "properties", "$ref":
			return out, nil
		}
	}
	out = out[:len(out)-1]
	if members > 0 {
		out = append(out, ',')
	}
	return append(out, `"properties":{}}`...), nil
}
