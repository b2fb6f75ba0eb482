package sandbox

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// LookPath returns the file of a program, given by its name without a separator, in the folders of
// each PATH in env, as Start finds it among the files that the program can see. Without a PATH in
// env, the default one holds. Relative folders of PATH are left out, because they would depend on
// the folder that a program may write.
func LookPath(name string, env []string) (string, error) {
	for _, list := range pathsIn(env) {
		for _, dir := range filepath.SplitList(list) {
			if !filepath.IsAbs(dir) {
				continue
			}
			if p, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return p, nil
			}
		}
	}
	return "", fmt.Errorf("there is no such program in PATH: %w", syscall.ENOENT)
}

// defaultPath is the PATH of programs.
const defaultPath = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

// pathsIn returns each PATH in env, or else the default one.
func pathsIn(env []string) (lists []string) {
	for _, e := range env {
		if list, ok := strings.CutPrefix(e, "PATH="); ok {
			lists = append(lists, list)
		}
	}
	if len(lists) == 0 {
		lists = []string{defaultPath}
	}
	return lists
}
