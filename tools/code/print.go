package code

import (
	"fmt"

	"github.com/pawl-go/pawl/internal/text"
)

// logsOf returns the stored output of a program.
func logsOf(kept *text.Ends) logs {
	head, tail := string(kept.Head), kept.Tail()
	if left := kept.Bytes - int64(len(head)+len(tail)); left > 0 {
		head += fmt.Sprintf("\n[… %d bytes left out …]\n", left)
	}
	return logs{head + string(tail), kept.Bytes}
}
