package http_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/tools/http"
)

// The addresses that the model chooses are checked. This one would have exposed the credentials of
// a program.
func ExampleNew() {
	web, err := http.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := pawl.Toolsets{web}.Execute(context.Background(), llm.ToolCall{Name: "http_fetch", Args: json.RawMessage(`{"url":"http://169.254.169.254/latest/meta-data/"}`)})
	fmt.Println(x.Result.Text())
	// Output: 169.254.169.254 is refused: it is the metadata service of a cloud
}
