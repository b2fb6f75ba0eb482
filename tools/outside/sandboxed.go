package outside

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawl-go/pawl/sandbox"
)

// Sandboxed returns a Runner that runs programs in a sandbox. base says how hard it holds them (Level), what they may read and write beside their own file and the
// folder they start in, which they may read, and their Limits; the rest of it is not used. Time is that of the tool where it is less. Where the machine
// cannot enforce the level, no program runs.
func Sandboxed(base sandbox.Spec) Runner {
	return func(ctx context.Context, p Process) (Exit, error) {
		spec := sandbox.Spec{Level: base.Level, Args: p.Args, Env: p.Env, Stdin: p.Stdin, Write: base.Write, Read: slices.Clone(base.Read), Limits: base.Limits}
		if p.Dir != "" {
			dir, err := filepath.EvalSymlinks(p.Dir)
			if err != nil {
				return Exit{}, err
			}
			spec.Dir = dir
			if !slices.ContainsFunc(base.Write, func(w string) bool { return within(dir, w) }) {
				spec.Read = append(spec.Read, dir)
			}
		}
		if filepath.IsAbs(p.Args[0]) {
			file, err := filepath.EvalSymlinks(p.Args[0])
			if err != nil {
				return Exit{}, err
			}
			spec.Args = append([]string{file}, p.Args[1:]...)
			if !within(file, "/usr") {
				spec.Read = append(spec.Read, file)
			}
		}
		if p.Limit > 0 {
			spec.Limits.Output = 2 * max(p.Limit, 16<<10) // half of it is the head
		}
		res, err := sandbox.Run(ctx, spec)
		if err != nil {
			return Exit{}, err
		}
		out := res.Stdout.Head
		if p.Limit > 0 && len(out) > p.Limit {
			out = out[:p.Limit]
		}
		x := Exit{Code: res.Exit, Stdout: out, Stderr: res.Stderr.Tail, Dropped: res.Stdout.Bytes - int64(len(out))}
		if !res.Stderr.Truncated() {
			x.Stderr = res.Stderr.Head
		}
		return x, nil
	}
}

// within reports whether path is dir, or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
