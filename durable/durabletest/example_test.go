package durabletest_test

import (
	"context"
	"fmt"

	"github.com/pawl-go/pawl/durable"
	"github.com/pawl-go/pawl/durable/durabletest"
	"github.com/pawl-go/pawl/store"
)

// A case is made on an engine; its world says what was done.
func Example() {
	var world durabletest.Memory
	eng := &durable.Engine{Journal: new(store.MemoryJournal)}
	res, err := durabletest.Drive(context.Background(), eng, "a", durabletest.ForEffect("post"), &world)
	if err != nil {
		panic(err)
	}
	writes := 0
	for _, d := range world.All() {
		if d.Tool == "post" {
			writes++
		}
	}
	fmt.Println(res.Text(), writes, len(durabletest.Violations(world.All(), world.All(), 0)))
	// Output: done 10 0
}
