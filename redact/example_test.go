package redact_test

import (
	"fmt"

	"github.com/pawl-go/pawl/redact"
)

// A Redactor replaces secrets in any form that it knows of.
func Example() {
	var r redact.Redactor
	if err := r.Add("sk-123456789"); err != nil {
		fmt.Println(err)
	}
	fmt.Println(r.String("the key is sk-123456789"))
	// Output:
	// the key is [redacted]
}
