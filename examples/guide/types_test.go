package guide

import (
	"fmt"

	"github.com/pawl-go/pawl"
)

// begin car
type Car struct {
	Color string `json:"color" jsonschema:"enum=red,enum=blue,description=painted, not named"`
	Seats int    `json:"seats,omitempty" jsonschema:"minimum=1,maximum=9"`
	Class string `json:"class" enum:"A,B" description:"the class of the car"`
	Owner string `json:"owner" jsonschema:"who owns it"`
}

// Validate checks what a schema cannot say. Its error goes back to the model.
func (c Car) Validate() error {
	if c.Class == "A" && c.Seats > 4 {
		return fmt.Errorf("a car of class A has at most 4 seats, got %d", c.Seats)
	}
	return nil
}

// end car

func Example_types() {
	fmt.Println(pawl.CheckFor[Car]()([]byte(`{"color":"red","seats":5,"class":"A","owner":"Ada"}`)))
	// Output:
	// a car of class A has at most 4 seats, got 5
}
