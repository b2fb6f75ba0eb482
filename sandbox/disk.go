//go:build linux && (amd64 || arm64)

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// disk measures how much a program writes to its writable folders, in bytes and in files.
//
// Walking the folders takes time if there are many files, whereas reading the free space of their
// disks is fast. The folders are therefore walked only when the free space has shrunk by the amount
// that the program may still write. If another program fills the disk, this costs a walk and ends
// nothing. If another program deletes files, a walk finds what this program has written by then.
type disk struct {
	roots []string
	limit usage
	file  int64 // bytes of the largest file
	begun time.Time
	first *os.Process // the first of the processes
	own   bool        // the program's /tmp is memory of its own: Strict

	// shared is the device of the machine's shared memory. Semaphores are deleted files there, and
	// none is on a disk. Empty means that there is none, or that a root lies on it.
	shared string

	room []usage // free space of each root at the last walk
	left usage   // decrease of the free space at which the next walk is due
}

// usage is an amount of disk space: bytes, and files, each of which takes an inode.
type usage [2]int64

// over returns the limit that an amount exceeds, or "".
func (u usage) over(limit usage) End {
	switch {
	case u[0] > limit[0]:
		return UsedDisk
	case u[1] > limit[1]:
		return UsedFiles
	}
	return ""
}

func newDisk(roots []string, s *Spec, first *os.Process) *disk {
	limit := usage{s.Limits.Disk, int64(s.Limits.Files)}
	d := &disk{
		roots: roots,
		limit: limit,
		file:  s.Limits.FileSize,
		begun: fileTime(),
		first: first,
		own:   s.Level == Strict,
		left:  limit,
	}
	d.shared = deviceOf("/dev/shm")
	for _, r := range roots {
		d.room = append(d.room, room(r))
		if deviceOf(r) == d.shared {
			d.shared = ""
		}
	}
	return d
}

// deviceOf returns the device of a file as the file maps of /proc has it, or "".
func deviceOf(path string) string {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%02x:%02x", unix.Major(st.Dev), unix.Minor(st.Dev))
}

// fileTime returns the time that a file would get if it was written now. File times come from a
// clock with a resolution of some milliseconds: by a finer clock, the program's first files would
// look older than the program.
func fileTime() time.Time {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now) != nil {
		return time.Now().Add(-20 * time.Millisecond)
	}
	return time.Unix(now.Unix())
}

// room returns the free space of the file system of path. A file system without a fixed number of
// inodes has 0 free ones.
func room(path string) (u usage) {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) == nil {
		u = usage{int64(st.Bfree) * int64(st.Bsize), int64(st.Ffree)}
	}
	return u
}

// filled returns the machine's folders and files that the program may write.
func (l *launch) filled() []string {
	if l.temp == "" {
		return l.spec.Write
	}
	return append(slices.Clone(l.spec.Write), l.temp)
}

// exceeded returns the limit that the program has exceeded, or "", and the time until the next
// look.
func (d *disk) exceeded() (over End, next time.Duration) {
	var lost, won usage
	for i, r := range d.roots {
		now := room(r)
		for k := range now {
			lost[k], won[k] = max(lost[k], d.room[i][k]-now[k]), max(won[k], now[k]-d.room[i][k])
		}
	}
	// A free space that changes is the sign, and cheap to read: counting the files of a tree is
	// not. Only then are they counted.
	if lost.over(d.left) != "" || won.over(usage{d.limit[0] / 16, d.limit[1] / 16}) != "" {
		for i, r := range d.roots {
			d.room[i] = room(r)
		}
		thaw := freeze(d.first) // or it would write in the meantime
		grown := d.grown()
		thaw()
		for i := range lost {
			lost[i], d.left[i] = 0, max(d.limit[i]-grown[i], d.limit[i]/16)
		}
		over = grown.over(d.limit)
	}
	return over, min(nextLook(lost[0], d.left[0], fillPerSecond), nextLook(lost[1], d.left[1], filesPerSecond))
}

// grown returns the size and the number of all files that were created or changed since the
// program began, including deleted files that it holds open. If the program hides its files, the
// size counts as exceeding the limit.
func (d *disk) grown() (sum usage) {
	seen := map[[2]uint64]bool{} // a file can have several names
	add := func(st *unix.Stat_t) {
		if time.Unix(st.Ctim.Unix()).Before(d.begun) {
			return
		}
		if id := [2]uint64{st.Dev, st.Ino}; !seen[id] {
			seen[id] = true
			sum[0] += st.Blocks * 512
			sum[1]++
		}
	}

	var st unix.Stat_t
	for _, r := range d.roots {
		filepath.WalkDir(r, func(path string, _ fs.DirEntry, err error) error {
			known := unix.Lstat(path, &st)
			if known == nil {
				add(&st)
			}

			// A file that was deleted or closed in the meantime is skipped. A file that cannot be
			// examined may hide the program's writes.
			switch {
			case known != nil && !errors.Is(known, unix.ENOENT):
				sum[0] = d.limit[0] + 1
			case err != nil && !errors.Is(err, fs.ErrNotExist) && !time.Unix(st.Ctim.Unix()).Before(d.begun):
				sum[0] = d.limit[0] + 1
			}
			if sum.over(d.limit) != "" {
				return fs.SkipAll
			}
			return nil
		})
	}
	sum[0] += d.unnamed(add)
	return sum
}

// unnamed calls add with the deleted files that the processes hold open or have mapped. It returns
// the most that files of unknown size can take: files whose descriptors are in the queue of a
// socket, and mapped files that this user cannot examine. Each can have the size of the largest.
func (d *disk) unnamed(add func(*unix.Stat_t)) (unknown int64) {
	seen := map[string]bool{} // sockets and mapped files
	for _, p := range family(d.first.Pid) {
		for _, task := range p.tasks { // a thread can have descriptors of its own
			list, err := os.ReadDir(task + "/fd")
			if err != nil && running(task) {
				return d.limit[0] + 1
			}
			for _, f := range list {
				unknown += d.held(task, f.Name(), seen, add) * d.file
			}
		}
		unknown += d.mapped(p, seen, add) * d.file
	}
	return unknown
}

// held adds the deleted file at a descriptor, or returns how many descriptors wait in its socket.
func (d *disk) held(task, fd string, seen map[string]bool, add func(*unix.Stat_t)) (waiting int64) {
	var st unix.Stat_t
	if unix.Stat(task+"/fd/"+fd, &st) != nil {
		return 0
	}
	id := fmt.Sprint("socket ", st.Ino)
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFREG && st.Nlink == 0:
		add(&st)
	case st.Mode&unix.S_IFMT == unix.S_IFSOCK && !seen[id]:
		seen[id] = true
		b, _ := os.ReadFile(task + "/fdinfo/" + fd)
		return fields(b, "scm_fds:") >> 10
	}
	return 0
}

// mapped adds the deleted files that a process has mapped, or returns how many it cannot examine.
func (d *disk) mapped(p process, seen map[string]bool, add func(*unix.Stat_t)) (unknown int64) {
	dir := p.dir()
	b, _ := os.ReadFile(dir + "/maps")
	var st unix.Stat_t
	temp := ""
	if d.own {
		temp = deviceOf(dir + "/root" + base)
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line) // range, rights, offset, device, inode, path
		deleted := len(f) >= 6 && f[len(f)-1] == "(deleted)"
		if !deleted || strings.HasPrefix(f[5], "/dev/zero") {
			continue
		}
		addresses := f[0]
		device := f[3]
		id := device + " " + f[4]
		if seen[id] {
			continue
		}
		seen[id] = true

		switch {
		case device == temp:
			// Files of the program's own temporary file system are counted with it.
		case device == d.shared:
			// The machine's memory is not one of the program's folders.
		case unix.Stat(fmt.Sprintf("/proc/%d/map_files/%s", p.pid, addresses), &st) == nil:
			add(&st)
		default:
			unknown++
		}
	}
	return unknown
}
