package artifact_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/artifact"
)

// Memory stores artifacts of a run, and offers result_read to the model.
func Example() {
	ctx := context.Background()
	m := new(artifact.Memory)
	_ = m.Put(ctx, "run-1", pawl.Artifact{Key: "run/1/0", Text: "a long result"})
	a, err := m.Get(ctx, "run-1", "run/1/0")
	fmt.Println(a.Text, err)
	tools, _ := m.Tools(ctx)
	fmt.Println(tools[0].Name)
	// Output:
	// a long result <nil>
	// result_read
}
