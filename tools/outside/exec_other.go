//go:build !unix

package outside

import (
	"context"
	"errors"
)

// Exec is a Runner for systems with process groups. On this system it returns an error.
func Exec(context.Context, Process) (Program, error) {
	return nil, errors.New("programs are not run on this system: there are no process groups, " +
		"so that nothing could end what they start")
}
