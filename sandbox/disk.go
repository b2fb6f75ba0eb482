//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// disk measures how much a program writes to its writable folders.
//
// Walking the folders takes time if there are many files, whereas reading the free space of their
// disks is fast. The folders are therefore walked only when the free space has shrunk by the amount
// that the program may still write. If another program fills the disk, this costs a walk and ends
// nothing.
type disk struct {
	roots []string
	limit int64
	begun time.Time
	pid   int // the first of the processes

	room []int64 // free space of each root at the last walk
	left int64   // decrease of the free space at which the next walk is due
}

func newDisk(roots []string, limit int64, pid int) *disk {
	// File times come from a clock with a resolution of some milliseconds.
	d := &disk{roots: roots, limit: limit, begun: time.Now().Add(-20 * time.Millisecond), pid: pid, left: limit}
	for _, r := range roots {
		d.room = append(d.room, room(r))
	}
	return d
}

// room returns the number of free bytes on the file system of path.
func room(path string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0
	}
	return int64(st.Bfree) * int64(st.Bsize)
}

// look reports whether the program has exceeded its limit, and how much of left is used.
func (d *disk) look() (over bool, lost int64) {
	for i, r := range d.roots {
		lost = max(lost, d.room[i]-room(r))
	}
	if lost <= d.left {
		return false, lost
	}
	for i, r := range d.roots {
		d.room[i] = room(r)
	}
	grown := d.grown()
	d.left = max(d.limit-grown, d.limit/16)
	return grown > d.limit, 0
}

// grown returns the size of all files that were created or changed since the program began,
// including deleted files that it holds open. If the program hides its files, the size counts as
// exceeding the limit.
func (d *disk) grown() (sum int64) {
	seen := map[[2]uint64]bool{} // a file can have several names
	add := func(st *unix.Stat_t) {
		if time.Unix(st.Ctim.Unix()).Before(d.begun) {
			return
		}
		if id := [2]uint64{st.Dev, st.Ino}; !seen[id] {
			seen[id] = true
			sum += st.Blocks * 512
		}
	}
	var st unix.Stat_t
	for _, r := range d.roots {
		filepath.WalkDir(r, func(path string, _ fs.DirEntry, err error) error {
			known := unix.Lstat(path, &st)
			if known == nil {
				add(&st)
			}
			hidden := known != nil && !errors.Is(known, unix.ENOENT) || err != nil &&
				!errors.Is(err, fs.ErrNotExist) && !time.Unix(st.Ctim.Unix()).Before(d.begun)
			if hidden {
				sum = d.limit + 1
			}
			if sum > d.limit {
				return fs.SkipAll
			}
			return nil // skip files that were deleted or closed in the meantime
		})
	}
	for _, p := range family(d.pid) {
		dir := "/proc/" + strconv.Itoa(p) + "/fd/"
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, f := range list {
			if unix.Stat(dir+f.Name(), &st) == nil && st.Nlink == 0 && st.Mode&unix.S_IFMT == unix.S_IFREG {
				add(&st)
			}
		}
	}
	return sum
}
