//go:build linux && amd64

package procgroup_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pawl-go/pawl/internal/procgroup"
)

// program is an ELF program without code, after the changes that a case makes to its headers.
func program(t *testing.T, change func(h *elf.Header64, p *elf.Prog64, linker *string)) string {
	t.Helper()
	h := elf.Header64{
		Type:      uint16(elf.ET_EXEC),
		Machine:   uint16(elf.EM_X86_64),
		Version:   uint32(elf.EV_CURRENT),
		Phoff:     64,
		Ehsize:    64,
		Phentsize: 56,
		Phnum:     1,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS] = byte(elf.ELFCLASS64)
	h.Ident[elf.EI_DATA] = byte(elf.ELFDATA2LSB)
	h.Ident[elf.EI_VERSION] = byte(elf.EV_CURRENT)
	p := elf.Prog64{Type: uint32(elf.PT_INTERP), Off: 64 + 56}
	linker := "/lib64/ld-linux-x86-64.so.2\x00"
	change(&h, &p, &linker)

	p.Filesz = uint64(len(linker))
	var b bytes.Buffer
	for _, part := range []any{h, p} {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			t.Fatal(err)
		}
	}
	return b.String() + linker
}

// Executable has the error of the system for each file that the system refuses, and none for a file
// that it executes.
func TestExecutable(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write("interpreter", "#!/bin/sh\n", 0o755)
	write("plain", "#!/bin/sh\n", 0o644)
	write("self", "#!"+dir+"/self\n", 0o755)
	write("cut", "\x7fELF", 0o755)

	header := func(change func(h *elf.Header64)) string {
		return program(t, func(h *elf.Header64, _ *elf.Prog64, _ *string) { change(h) })
	}
	linker := func(path string) string {
		return program(t, func(_ *elf.Header64, _ *elf.Prog64, linker *string) { *linker = path })
	}
	for name, text := range map[string]string{
		"a script":                             "#!/bin/sh\necho good\n",
		"a script with a space and an option":  "#! /bin/sh -e \necho good\n",
		"a script without a last line end":     "#!/bin/true",
		"a script by env":                      "#!/usr/bin/env sh\n",
		"a script of a script":                 "#!" + dir + "/interpreter\n",
		"a relative interpreter":               "#!./interpreter\n",
		"a relative interpreter without a dot": "#!interpreter\n",
		"a program":                            string(whole),
		"an empty file":                        "",
		"text":                                 "echo good\n",
		"a byte order mark":                    "\xef\xbb\xbf#!/bin/sh\n",
		"a first line for Windows":             "#!/bin/sh\r\necho good\r\n",
		"no interpreter":                       "#!/no/such/interpreter\n",
		"an interpreter in PATH":               "#!sh\n",
		"an interpreter that is plain":         "#!" + dir + "/plain\n",
		"an interpreter that is a folder":      "#!" + dir + "\n",
		"an interpreter below a file":          "#!" + dir + "/plain/sh\n",
		"an interpreter that is broken":        "#!" + dir + "/cut\n",
		"an interpreter without an end":        "#!" + dir + "/self\n",
		"a first line without a name":          "#!\n/bin/sh\n",
		"a first line of spaces":               "#!  \t \n/bin/sh\n",
		"a name that is too long":              "#!/" + strings.Repeat("x", 300) + "\n",
		"a long option":                        "#!/bin/sh -" + strings.Repeat("e", 300) + "\n",
		"an ELF without a header":              "\x7fELF that is none",
		"an ELF of four bytes":                 "\x7fELF",
		"an ELF that is cut in its header":     string(whole[:40]),
		"an ELF that is cut after its header":  string(whole[:64]),
		"an ELF without segments":              header(func(h *elf.Header64) { h.Phnum = 0 }),
		"an ELF with other segments":           header(func(h *elf.Header64) { h.Phentsize = 32 }),
		"an object file":                       header(func(h *elf.Header64) { h.Type = uint16(elf.ET_REL) }),
		"an ELF of another machine":            header(func(h *elf.Header64) { h.Machine = uint16(elf.EM_AARCH64) }),
		"an ELF without its linker":            linker("/no/such/linker\x00"),
		"an ELF with a linker that is plain":   linker(dir + "/plain\x00"),
		"an ELF with a linker without an end":  linker("/lib64/ld"),
		"an ELF with segments after its end":   header(func(h *elf.Header64) { h.Phoff = 1 << 20 }),
	} {
		write("act", text, 0o755)
		file := filepath.Join(dir, "act")
		cmd := exec.Command(file, "-test.run=^$")
		cmd.Dir = dir
		refused := cmd.Start()
		if refused == nil {
			_ = cmd.Wait()
		}

		got := procgroup.Executable(file, dir)
		var want syscall.Errno
		switch isRefused := errors.As(refused, &want); {
		case isRefused && got == nil && name == "an ELF of another machine":
			t.Logf("%s: a program may be registered for it", name)
		case !isRefused && got != nil:
			t.Errorf("%s: %v, and it runs", name, got)
		case isRefused && !errors.Is(got, want):
			t.Errorf("%s: got %v, want %v", name, got, refused)
		}
	}
}
