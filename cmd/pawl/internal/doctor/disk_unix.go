//go:build linux || darwin

package doctor

import (
	"syscall"
)

// freeSpace is what this user can still write in the file system of a folder, in bytes.
func freeSpace(dir string) (free uint64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
