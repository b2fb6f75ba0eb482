//go:build !linux

package procgroup

// Executable returns nil: what the format of a file says about its execution is known only for
// Linux.
func Executable(string, string) error { return nil }
