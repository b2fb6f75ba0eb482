package cli

import (
	"fmt"
)

// Notice says on standard error what is worth knowing of an agent that is made.
func (s *System) Notice(text string) { fmt.Fprintf(s.Err, "pawl: %s\n", Visible(text)) }
