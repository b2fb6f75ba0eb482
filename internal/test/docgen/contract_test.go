package docgen

import (
	"testing"

	"github.com/pawl-go/pawl/internal/test/contract"
)

// TestContract writes the page of behaviours and doors.
func TestContract(t *testing.T) { current(t, "docs/doors.md", contract.Page()) }
