//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package procgroup

// AwaitEnd reports that this system cannot wait for the end of a process without releasing its ID.
func AwaitEnd(int) bool { return false }
