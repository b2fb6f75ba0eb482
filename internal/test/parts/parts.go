// Package parts finds what only tests use and the project does not contain: programs of the
// machine, npm packages, sources of Go modules, and programs that are built from source. A test
// that needs an absent part is skipped with one line, which says who has it or makes it:
//
//	node := parts.Program(t, "node", "nodejs")
//
// Under -short (`make check`) every part is absent, so that Go alone runs the tests.
package parts

import (
	"bytes"
	"flag"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// Alone reports whether tests use no part, because of -short. It may be called before the flags are
// parsed; it parses them.
func Alone() bool {
	if !flag.Parsed() {
		flag.Parse()
	}
	return testing.Short()
}

// skipAlone skips the test if it is to use no part.
func skipAlone(t testing.TB) {
	t.Helper()
	if Alone() {
		t.Skip("short: it uses more than Go; make test runs it")
	}
}

// Program returns the path of a program, and skips the test if it is not installed. The name may be
// a path. The Debian package of that name has it.
func Program(t testing.TB, name, debian string) string {
	t.Helper()
	skipAlone(t)
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is absent: Debian's package %s has it", filepath.Base(name), debian)
	}
	return path
}

// Packages returns the path of node, and skips the test if node or one of the npm packages or files
// names in dir/node_modules is not installed.
func Packages(t testing.TB, dir string, names ...string) string {
	t.Helper()
	node := Program(t, "node", "nodejs")
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", filepath.FromSlash(name))); err != nil {
			t.Skip("npm packages are absent: make test installs them")
		}
	}
	return node
}

// Source returns the folder with the source of a Go module that the go.mod in dir requires, and
// skips the test if it was not downloaded. Nothing is downloaded, and nothing of it is built.
func Source(t testing.TB, dir, module string) string {
	t.Helper()
	skipAlone(t)
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Dir = dir
	list.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=readonly", "GOPROXY=off")
	var why bytes.Buffer
	list.Stderr = &why

	out, err := list.Output()
	folder := strings.TrimSpace(string(out))
	if err != nil || folder == "" {
		t.Skipf("the module %s is not downloaded: make test downloads it %s", module, strings.TrimSpace(why.String()))
	}
	return folder
}

// Built returns the path of a program that `make soak` builds into .bin of the checkout, and skips
// the test if it is not built.
func Built(t testing.TB, name string) string {
	t.Helper()
	skipAlone(t)
	path, ok := Find(name)
	if !ok {
		t.Skipf("%s is not built: make soak builds it", name)
	}
	return path
}

// Find returns the path of a program that `make soak` builds into .bin of the checkout. A nested
// module has a go.mod of its own, so that the root is known by scripts/setup.
func Find(name string) (path string, ok bool) {
	dir, err := os.Getwd()
	if err != nil {
		return "", false
	}
	for dir != filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "scripts", "setup")); err == nil {
			path = filepath.Join(dir, ".bin", name)
			_, err = os.Stat(path)
			return path, err == nil
		}
		dir = filepath.Dir(dir)
	}
	return "", false
}

// Port returns a port of loopback at which nothing listens, for a part that cannot choose one.
// Systems give out ports above these, so that no other process gets it before the part listens, or
// while the part is restarted.
func Port() (string, error) {
	const first, number = 10_000, 20_000
	var err error
	for range 100 {
		port := strconv.Itoa(first + rand.IntN(number))
		var l net.Listener
		l, err = net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			return port, l.Close()
		}
	}
	return "", err
}
