package fault_test

import (
	"fmt"

	"github.com/pawl-go/pawl/store/storetest/fault"
)

// Each fault names the part of the suite that finds it.
func Example() {
	for _, f := range fault.Threads()[:2] {
		fmt.Printf("%s: store.Threads that %s\n", f.Part, f.Name)
	}
	// Output:
	// life: store.Threads that drops the title
	// life: store.Threads that drops the meta
}
