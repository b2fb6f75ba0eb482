package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/sandbox"
	"github.com/pawl-go/pawl/tools/shell"
)

// The level none enforces nothing, so that the example runs everywhere. Nil options are strict.
func ExampleNew() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	run, err := shell.New(dir, &shell.Options{Level: sandbox.None})
	if err != nil {
		fmt.Println(err)
		return
	}
	x := pawl.Toolsets{run}.Execute(context.Background(), llm.ToolCall{Name: "shell_exec", Args: json.RawMessage(`{"command":"echo 6 7 | tr ' ' '*'; ls nothing"}`)})
	fmt.Println(x.Result.Text())
	// Output:
	// exit status 2
	// 6*7
	// --- stderr ---
	// ls: cannot access 'nothing': No such file or directory
}
