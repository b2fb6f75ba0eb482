package toolrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/pawl-go/pawl/internal/jsonform"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/internal/toolrun"
)

func Example() {
	type args struct{ Count toolrun.Whole }
	pack := toolrun.Func(func(_ context.Context, a args) (llm.ToolResult, error) {
		if a.Count < 1 {
			return llm.ToolResult{}, toolrun.Refuse("count is %d; give 1 or more", a.Count)
		}
		return toolrun.Result(fmt.Sprintf("Packed %d", a.Count), map[string]toolrun.Whole{"packed": a.Count})
	})
	for _, raw := range []string{`{"count":2.0}`, `{"count":0}`} {
		res, err := pack(context.Background(), llm.ToolCall{Args: json.RawMessage(raw)})
		fmt.Println(res.IsError, res.Text(), string(res.Data), err)
	}
	// Output:
	// false Packed 2 {"packed":2} <nil>
	// true count is 0; give 1 or more  <nil>
}

func TestFunc(t *testing.T) {
	broken := errors.New("the disk is gone")
	for _, tt := range []struct {
		args string
		err  error
		told string
		want error
	}{
		{`{"n":1}`, nil, "done", nil},
		{`{"n":1}`, toolrun.Refuse("no: %d", 1), "no: 1", nil},
		{`{"n":1}`, fmt.Errorf("twice: %w", toolrun.Refuse("no")), "no", nil},
		{`{"n":1}`, broken, "", broken},
		{`{"n":1.5}`, nil, "invalid args: 1.5 is not a whole number", nil},
		{`{"n":"1"}`, nil, `invalid args: "1" is not a whole number`, nil},
		{`{"n":null}`, nil, "done", nil},
		{`[`, nil, "invalid args: unexpected end of JSON input", nil},
	} {
		f := toolrun.Func(func(context.Context, struct{ N toolrun.Whole }) (llm.ToolResult, error) {
			if tt.err != nil {
				return llm.ToolResult{}, tt.err
			}
			return llm.TextResult("done"), nil
		})
		res, err := f(t.Context(), llm.ToolCall{Args: json.RawMessage(tt.args)})
		if res.Text() != tt.told || err != tt.want || res.IsError != (tt.told != "done" && tt.want == nil) {
			t.Errorf("%s, %v: %q, %v; want %q, %v", tt.args, tt.err, res.Text(), err, tt.told, tt.want)
		}
	}
}

func TestWhole(t *testing.T) {
	for in, want := range map[string]toolrun.Whole{"7": 7, "2.0": 2, "1e3": 1000, "1e30": 1 << 53, "-1e999": -1 << 53, "null": 0} {
		var w toolrun.Whole
		if err := json.Unmarshal([]byte(in), &w); err != nil || w != want {
			t.Errorf("%s: %d, %v; want %d", in, w, err, want)
		}
	}
}

func TestMarshal(t *testing.T) {
	if b, err := jsonform.Marshal(map[string]string{"a": "<b> & c"}); err != nil || string(b) != `{"a":"<b> & c"}` {
		t.Errorf("%s, %v", b, err)
	}
}
