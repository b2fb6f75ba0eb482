package code_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/code"
)

// The program loops over two calls and sums their results: one request to the model instead of
// three.
func ExampleNew() {
	price := pawl.Func("price", "Price of an item.", func(_ context.Context, in struct {
		Item string `json:"item"`
	}) (map[string]int, error) {
		return map[string]int{"euro": len(in.Item)}, nil
	})
	run, err := code.New(code.Embedded(nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	args, _ := json.Marshal(map[string]string{"code": `
total = 0
for item in ["pawl", "ratchet"]:
    total += call_tool("price", {"item": item})["euro"]
print("two items")
set_result({"total": total})
`})
	x := pawl.Toolsets{price, run}.Execute(context.Background(), llm.ToolCall{Name: "execute_code", Args: args})
	fmt.Println(x.Result.Text())
	// Output:
	// {"total":11}
	// --- logs ---
	// two items
}
