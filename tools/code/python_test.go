package code_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/tools/code"
)

func TestFirst(t *testing.T) {
	py := code.Python(nil)
	defer py.Close()
	tool, err := code.New(py, nil)
	if err != nil {
		t.Fatal(err)
	}
	add := pawl.Func("add", "", func(_ context.Context, in struct{ A, B int }) (int, error) { return in.A + in.B, nil })
	for _, c := range []string{"print('hi')\nset_result(call_tool('add', {'A':1,'B':2}))", "x = 1\ndef f():\n  return x/0\nf()", "import os\nos._exit(3)", "call_tool('ad')", "import random\nset_result(random.random())", "import random\nset_result(random.random())", "if:", "while True: print('x'*100)"} {
		b, _ := json.Marshal(map[string]any{"code": c, "timeout": 1})
		begun := time.Now()
		x := pawl.Execute(t.Context(), pawl.Toolsets{add, tool}, pawl.ToolCall{Name: "execute_code", Args: b})
		s := x.Result.Text()
		fmt.Println(time.Since(begun), x.Outcome, s[:min(len(s), 500)])
	}
}
