package procgroup

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unicode"
)

const (
	headSize         = 256 // bytes of a file that the kernel reads to know its format
	mostInterpreters = 5   // scripts whose interpreter is a script, and so on
	mostHeaders      = 64 << 10
	mostName         = 4096 // bytes of the path of a dynamic linker
)

// Executable returns the error with which the system refuses to execute the file of a program in
// dir, as far as the file says: it has no format of this system, or its interpreter is absent or
// may not be executed. An empty dir means the current directory. A nil error is no promise: the
// file may be unreadable, or another program may be registered for its format.
func Executable(file, dir string) error {
	for range mostInterpreters + 1 {
		interpreter, err := interpreterOf(file)
		if err != nil || interpreter == "" {
			return err
		}

		// The system takes the name as a path, never from PATH.
		file = interpreter
		if !filepath.IsAbs(file) {
			file = cmp.Or(dir, ".") + string(filepath.Separator) + file
		}
		if err := executable(file); err != nil {
			return err
		}
	}
	return syscall.ELOOP
}

// interpreterOf returns the path of the interpreter that a script names. Empty means that file is
// no script.
func interpreterOf(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", nil // a file can be executed without being read
	}
	defer f.Close()
	head := make([]byte, headSize)
	n, err := f.Read(head)

	switch {
	case err != nil && err != io.EOF:
		return "", nil
	case bytes.HasPrefix(head, []byte("#!")):
		return scriptInterpreter(head)
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return "", checkELF(f, head)
	case isText(head[:n]) && !registers("extension "):
		return "", syscall.ENOEXEC
	case registers("magic "):
		return "", nil
	}
	return "", syscall.ENOEXEC
}

// isText reports whether the head of a file is text, as of a script without a first line that names
// an interpreter.
func isText(head []byte) bool {
	isControl := func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }
	return bytes.IndexFunc(head, isControl) < 0
}

// scriptInterpreter returns the interpreter in the first line of a script, as the kernel reads it:
// a carriage return is part of a name.
func scriptInterpreter(head []byte) (string, error) {
	line, _, whole := bytes.Cut(head[2:], []byte("\n"))
	name := strings.TrimLeft(string(line), " \t")
	end := strings.IndexAny(name, " \t\x00")
	isCut := !whole && end < 0
	switch {
	case isCut:
		return "", syscall.ENOEXEC // the name is longer than what the kernel reads
	case end >= 0:
		name = name[:end]
	}
	if name == "" {
		return "", syscall.ENOEXEC
	}
	return name, nil
}

// executable returns the error of an interpreter that is absent or may not be executed.
func executable(file string) error {
	_, err := exec.LookPath(file)
	if errors.Is(err, syscall.EISDIR) {
		return syscall.EACCES // as the system says
	}
	return err
}

// machines are the 64-bit ELF machines of this project's systems.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkELF returns the error with which the kernel refuses the ELF file f. head is its beginning.
func checkELF(f *os.File, head []byte) error {
	class := elf.Class(head[elf.EI_CLASS])
	order := elf.Data(head[elf.EI_DATA])
	machine, isKnown := machines[runtime.GOARCH]
	switch {
	case class != elf.ELFCLASS64 && class != elf.ELFCLASS32:
		return syscall.ENOEXEC
	case order != elf.ELFDATA2LSB && order != elf.ELFDATA2MSB:
		return syscall.ENOEXEC
	case !isKnown || class == elf.ELFCLASS32:
		return nil // many kernels execute the programs of the smaller machine too
	}

	var h elf.Header64
	if err := binary.Read(bytes.NewReader(head), binary.LittleEndian, &h); err != nil {
		return syscall.ENOEXEC
	}
	isOwn := order == elf.ELFDATA2LSB && elf.Machine(h.Machine) == machine
	kind := elf.Type(h.Type)
	var p elf.Prog64
	size := int(h.Phnum) * binary.Size(p)
	switch {
	case !isOwn && registers("magic "):
		return nil
	case !isOwn:
		return syscall.ENOEXEC
	case kind != elf.ET_EXEC && kind != elf.ET_DYN:
		return syscall.ENOEXEC
	case int(h.Phentsize) != binary.Size(p):
		return syscall.ENOEXEC
	case size == 0 || size > mostHeaders:
		return syscall.ENOEXEC
	}

	headers := make([]byte, size)
	if _, err := f.ReadAt(headers, int64(h.Phoff)); err != nil {
		return syscall.ENOEXEC
	}
	for r := bytes.NewReader(headers); binary.Read(r, binary.LittleEndian, &p) == nil; {
		if elf.ProgType(p.Type) == elf.PT_INTERP {
			return checkLinker(f, &p)
		}
	}
	return nil
}

// checkLinker returns the error with which the kernel refuses f because of its dynamic linker,
// whose path is in the segment p.
func checkLinker(f *os.File, p *elf.Prog64) error {
	if p.Filesz < 2 || p.Filesz > mostName {
		return syscall.ENOEXEC
	}
	name := make([]byte, p.Filesz)
	if _, err := f.ReadAt(name, int64(p.Off)); err != nil {
		return syscall.ENOEXEC
	}

	path, terminated := strings.CutSuffix(string(name), "\x00")
	if !terminated {
		return syscall.ENOEXEC
	}
	path, _, _ = strings.Cut(path, "\x00")
	if !filepath.IsAbs(path) {
		return nil // relative to the folder of a process that does not exist yet
	}
	return executable(path)
}

// registers reports whether a program may be registered for files that the kernel does not execute
// itself: by the extension of their name or by magic bytes. by is how the line of an entry begins
// that says so. A container does not see the entries of its machine. They are then taken to be for
// magic bytes, as of programs for other machines.
func registers(by string) bool {
	const entries = "/proc/sys/fs/binfmt_misc"
	files, err := os.ReadDir(entries)
	if err != nil || len(files) == 0 {
		return by == "magic "
	}

	for _, f := range files {
		entry, _ := os.ReadFile(filepath.Join(entries, f.Name()))
		for line := range strings.Lines(string(entry)) {
			if strings.HasPrefix(line, by) {
				return true
			}
		}
	}
	return false
}
