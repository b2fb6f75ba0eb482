package sandbox_test

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-go/pawl/internal/test/buildcache"
	"github.com/pawl-go/pawl/internal/test/parts"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/sandbox"
)

// The toolchain of each language runs in a folder of its own, with a private cache. It reaches no
// network and no file outside, which the same program reaches without the sandbox.
func TestToolchains(t *testing.T) {
	if err := sandbox.Check(sandbox.Strict); err != nil {
		t.Skip(err)
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	go func() {
		for {
			c, err := server.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	host, port, _ := net.SplitHostPort(server.Addr().String())
	for _, lang := range []struct {
		name, program string
		find          func(string) (sandbox.Toolchain, error)
		good          string // prints good
		reach         string // prints what it reaches: net, file, or none
	}{
		{"Go", "go", sandbox.Go, soak.N(`echo good`, `printf 'module m\n\ngo 1.20\n' >go.mod
printf 'package m\nimport "testing"\nfunc Test(t *testing.T) { t.Log("good") }\n' >m_test.go
go test -v . | grep -o good`) + `; [ -w "$GOCACHE" ] && ! [ -w "$(go env GOROOT)/VERSION" ]`,
			// package net would take a minute to compile
			`mkdir x && cd x && cat >x.go <<'END' && GO111MODULE=off go run x.go 2>&1
package main
import "syscall"
func main() {
	s, _ := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if syscall.Connect(s, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: PORT}) == nil { println("net") }
	if _, err := syscall.Open("SECRET", 0, 0); err == nil { println("file") }
	println("none")
}
END`},
		{"Node", "node", sandbox.Node, `node -e 'console.log("good")'; npm config get offline`,
			`node -e 'try { require("fs").readFileSync("SECRET"); console.log("file") } catch (e) {}
require("net").connect(PORT, "HOST", function () { console.log("net"); this.destroy() }).on("error", () => console.log("none"))'`},
		{"Python", "python3", sandbox.Python, `python3 -c 'import json, ssl, sqlite3; print("good")'`,
			`python3 -c '
import socket
try: open("SECRET").read(); print("file")
except OSError: pass
try: socket.create_connection(("HOST", PORT)).close(); print("net")
except OSError: print("none")'`},
	} {
		t.Run(lang.name, func(t *testing.T) {
			if lang.program != "go" {
				parts.Program(t, lang.program, map[string]string{"node": "nodejs", "python3": "python3"}[lang.program])
			}
			work, cache := t.TempDir(), t.TempDir()
			if lang.program == "go" && !soak.On() {
				buildcache.Share(t, cache)
			}
			tools, err := lang.find(cache)
			if err != nil {
				t.Fatal(err)
			}
			run := func(level sandbox.Level, script string) string {
				t.Helper()
				script = strings.NewReplacer("HOST", host, "PORT", port, "SECRET", secret).Replace(script)
				dir, err := os.MkdirTemp(work, "")
				if err != nil {
					t.Fatal(err)
				}
				res, err := sandbox.Run(t.Context(), sandbox.Spec{Level: level, Args: []string{"sh", "-c", script},
					Write: []string{dir}}.With(tools))
				if err != nil {
					t.Fatal(err)
				}
				if res.End != sandbox.Exited || res.Exit != 0 {
					t.Fatalf("%s %d: %s%s", res.End, res.Exit, res.Stdout.String(), res.Stderr.String())
				}
				return res.Stdout.String()
			}
			begun := time.Now()
			if got := run(sandbox.Strict, lang.good); !strings.HasPrefix(got, "good\n") {
				t.Errorf("got %q", got)
			}
			if got := run(sandbox.Strict, lang.reach); got != "none\n" {
				t.Errorf("in the sandbox it reaches %q", got)
			}
			if got := run(sandbox.None, lang.reach); !strings.Contains(got, "file") || !strings.Contains(got, "net") {
				t.Errorf("without the sandbox it reaches %q", got)
			}
			t.Log(time.Since(begun).Round(time.Millisecond), tools.Read)
		})
	}
}

// The Spec takes precedence over its toolchains, and the first toolchain over the next.
func TestWith(t *testing.T) {
	s := sandbox.Spec{Env: []string{"A=spec"}}.With(
		sandbox.Toolchain{Env: []string{"A=one", "B=one"}, Path: []string{"/one"}, Read: []string{"/r"},
			Limits: sandbox.Limits{Disk: 2}},
		sandbox.Toolchain{Env: []string{"B=two", "C=two"}, Path: []string{"/two"}, Read: []string{"/r"},
			Write: []string{"/w"}, Limits: sandbox.Limits{Disk: 3}})
	want := []string{"A=spec", "B=one", "C=two", "PATH=/one:/two:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"}
	if !slices.Equal(s.Env, want) || len(s.Read) != 2 || len(s.Write) != 1 || s.Limits != (sandbox.Limits{Disk: 2}) {
		t.Errorf("got %+v", s)
	}
	other := sandbox.Toolchain{Path: []string{"/one"}, Limits: sandbox.Limits{Disk: 2}}
	s = sandbox.Spec{Env: []string{"PATH=/mine"}, Limits: sandbox.Limits{Memory: 1}}.With(other)
	if !slices.Equal(s.Env, []string{"PATH=/mine"}) || s.Limits != (sandbox.Limits{Memory: 1}) {
		t.Errorf("got %+v", s)
	}
}
