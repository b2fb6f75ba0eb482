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

// disk looks at how much a program fills of the folders that it may write.
//
// Going through them takes a while where there are many files, and how much room their disk has left is asked in no time. So they are gone through only
// when the disk has lost what the program may fill; whoever else fills it costs a look, and ends nothing.
type disk struct {
	roots []string
	limit int64
	begun time.Time
	pid   int // the first of the processes

	room []int64 // that each of the roots had when they were last gone through
	left int64   // what may be lost of it until they are again
}

func newDisk(roots []string, limit int64, pid int) *disk {
	// Times of files come from a clock that stands still for some milliseconds.
	d := &disk{roots: roots, limit: limit, begun: time.Now().Add(-20 * time.Millisecond), pid: pid, left: limit}
	for _, r := range roots {
		d.room = append(d.room, room(r))
	}
	return d
}

// room is how many bytes are free where path is.
func room(path string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return 0
	}
	return int64(st.Bfree) * int64(st.Bsize)
}

// look reports whether the program has filled more than it may, and how much of left is used.
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

// grown is how much room is taken by what came or changed since the program began, files that it has deleted and holds open included. What it hides
// counts as too much.
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
			hidden := known != nil && !errors.Is(known, unix.ENOENT) || err != nil && !errors.Is(err, fs.ErrNotExist) && !time.Unix(st.Ctim.Unix()).Before(d.begun)
			if hidden {
				sum = d.limit + 1
			}
			if sum > d.limit {
				return fs.SkipAll
			}
			return nil // what is gone, or was closed before, is passed over
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
