package eval_test

import (
	"context"
	"fmt"
	"os"

	"github.com/pawl-go/pawl/eval"
)

func Example() {
	dir, err := os.MkdirTemp("", "evals-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	suite, err := eval.Load("testdata/clerk/clerk.eval.yaml", nil)
	if err != nil {
		panic(err)
	}
	report, err := eval.Run(context.Background(), suite, &eval.Options{Dir: dir})
	if err != nil {
		panic(err)
	}
	for _, v := range report.Variants {
		for _, c := range v.Cases {
			fmt.Printf("%s by %s: %d of %d trials\n", c.ID, v.Name, c.Passed, c.Judged)
		}
	}
	fmt.Println("passed:", report.Passed())
	// Output:
	// note-anna by now: 4 of 4 trials
	// no-delete by now: 4 of 4 trials
	// passed: true
}
