package mutant_test

import (
	"fmt"

	"github.com/pawl-go/pawl/pawltest/mutant"
)

// Each mutant names the part of the suite that must find it.
func Example() {
	for _, m := range mutant.Models()[:2] {
		fmt.Printf("%s: a Model that %s\n", m.Part, m.Name)
	}
	fmt.Println(mutant.Score{Found: []string{"drops the model's name"}, Survived: []string{"drops the instructions"}})
	// Output:
	// request/model: a Model that drops the model's name
	// request/instructions: a Model that drops the instructions
	// 1 of 2 planted faults found
}
