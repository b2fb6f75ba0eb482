//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package procgroup

// awaitEnd reports that this system cannot wait for the end of a process without releasing its ID.
func awaitEnd(int) bool { return false }
