// Package toolrun creates the function of a built-in tool from a function that takes its arguments
// as a Go value, and provides refusals, which are errors for the model.
//
//	func (s *Set) delete(ctx context.Context, a deleteArgs) (llm.ToolResult, error) {
//		if a.Path == "." {
//			return llm.ToolResult{}, toolrun.Refuse("the root itself cannot be deleted; " +
//				"give the path of something in it")
//		}
//		…
//	}
//
//	&pawl.Tool{Name: "file_delete", Run: toolrun.Func(s.delete), …}
//
// The pipeline has already validated the arguments against the tool's schema. The function checks
// only what a schema cannot express.
package toolrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
)

// Refusal is an error for the model: what was wrong, and what would be right.
type Refusal string

// Error returns the text.
func (r Refusal) Error() string { return string(r) }

// Refuse returns a Refusal.
func Refuse(format string, args ...any) error { return Refusal(fmt.Sprintf(format, args...)) }

// Func returns a ToolFunc that calls fn. It may be called concurrently if fn may. A Refusal,
// wrapped or not, becomes a result for the model. Any other error is returned.
func Func[Args any](fn func(context.Context, Args) (llm.ToolResult, error)) pawl.ToolFunc {
	return func(ctx context.Context, call llm.ToolCall) (llm.ToolResult, error) {
		var args Args
		if err := json.Unmarshal(call.Args, &args); err != nil {
			return llm.ErrorResult("invalid args: " + err.Error()), nil
		}
		res, err := fn(ctx, args)
		if r, ok := errors.AsType[Refusal](err); ok {
			return llm.ErrorResult(string(r)), nil
		}
		return res, err
	}
}

// Result returns a result with text for the model and data, as JSON, for programs.
func Result(text string, data any) (llm.ToolResult, error) {
	b, err := jsonform.Marshal(data)
	return llm.ToolResult{Parts: []llm.Part{llm.Text{Text: text}}, Data: b}, err
}

// Whole is an integer argument. JSON Schema accepts 2.0 as an integer, and some models write it.
type Whole int

// UnmarshalJSON parses a number without a fraction. A number that is too large becomes the largest
// int, and null changes nothing.
func (w *Whole) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if string(b) == "null" {
		return nil
	}
	if f != math.Trunc(f) || err != nil && !errors.Is(err, strconv.ErrRange) {
		return fmt.Errorf("%s is not a whole number", b)
	}
	*w = Whole(max(min(f, 1<<53), -1<<53))
	return nil
}

// Define completes t with texts from files and returns t. NAME.md is the description. NAME.json has
// the schemas, as {"input": …, "output": …}. A schema that is missing there keeps its value in t.
//
// vars are pairs of a name and a text. Define replaces {name} by the text in both files. In
// NAME.json it also replaces the string "{name}" with its quotes, so that a text can be a number.
// If vars have no such name, it replaces "{name}" by the schema of that name in shared.json.
//
// The files are embedded in the program. Define panics if a file is missing or is not JSON.
func Define(files fs.FS, name string, t *pawl.Tool, vars ...string) *pawl.Tool {
	var quoted, plain []string
	for i := 0; i < len(vars); i += 2 {
		plain = append(plain, "{"+vars[i]+"}", vars[i+1])
		quoted = append(quoted, `"{`+vars[i]+`}"`, vars[i+1])
	}

	shared := map[string]json.RawMessage{}
	if _, err := fs.Stat(files, "shared.json"); err == nil {
		decode(compact(files, "shared.json"), &shared)
	}
	for part, schema := range shared {
		quoted = append(quoted, `"{`+part+`}"`, string(schema))
	}

	// The quoted forms come first: a Replacer takes the first of its pairs that fits at a place.
	replaced := strings.NewReplacer(append(quoted, plain...)...).Replace
	var schemas struct{ Input, Output json.RawMessage }
	decode([]byte(replaced(string(compact(files, name+".json")))), &schemas)
	t.Description = replaced(strings.TrimSpace(string(read(files, name+".md"))))
	if schemas.Input != nil {
		t.Input = schemas.Input
	}
	if schemas.Output != nil {
		t.Output = schemas.Output
	}
	return t
}

func read(files fs.FS, name string) []byte {
	b, err := fs.ReadFile(files, name)
	if err != nil {
		panic(err)
	}
	return b
}

func compact(files fs.FS, name string) []byte {
	var b bytes.Buffer
	if err := json.Compact(&b, read(files, name)); err != nil {
		panic(name + ": " + err.Error())
	}
	return b.Bytes()
}

func decode(b []byte, into any) {
	if err := json.Unmarshal(b, into); err != nil {
		panic(err)
	}
}
