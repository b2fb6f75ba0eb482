//go:build linux && (amd64 || arm64)

package sandbox_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/sandbox"
)

// None enforces nothing, so that the example runs everywhere. Leave Level out for a program that is
// not trusted.
func ExampleRun() {
	res, err := sandbox.Run(context.Background(), sandbox.Spec{
		Level: sandbox.None,
		Args:  []string{"sh", "-c", `read name; echo "hello $name"; exit 3`},
		Stdin: []byte("world\n"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(res.Stdout.String())
	fmt.Println(res.End, res.Exit)
	// Output:
	// hello world
	// exited 3
}
