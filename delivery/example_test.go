package delivery_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/delivery"
	"github.com/pawl-go/pawl/llm"
)

// A payment whose connection broke after it was sent may have happened. The model reads so, and the
// record says it in one word.
func Example() {
	pay := pawl.Func("pay", "Pays an invoice.", func(context.Context, struct{}) (string, error) {
		return "", delivery.NewError(delivery.Unknown, "the bank did not answer", nil)
	})
	x := pawl.Toolsets{pay}.Execute(context.Background(), llm.ToolCall{Name: "pay"})
	fmt.Println(x.Result.Text())
	fmt.Println(x.Certainty)
	// Output:
	// the bank did not answer. What the call does may have happened.
	// unknown
}
