package outside

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/sandbox"
)

// Sandboxed returns a Runner that runs programs in a sandbox. base contains the level of
// enforcement (Level), the paths that all programs may read and write, their Limits, and the Proxy
// for programs that need the network. Its other fields are ignored. A program may also read its own
// file and its working directory, and use the paths in its definition. If Limits has no Time, a
// program has the timeout of its tool. If the machine cannot enforce the level, or a program needs
// the network and there is no Proxy, the program does not run, and the error is
// sandbox.ErrUnenforced.
func Sandboxed(base sandbox.Spec) Runner {
	return func(ctx context.Context, p Process) (Exit, error) {
		if err := networked(base, p.Network); err != nil {
			return Exit{}, err
		}
		spec, err := given(base, p)
		if err != nil {
			return Exit{}, err
		}
		if end, bounded := ctx.Deadline(); bounded && spec.Limits.Time == 0 {
			spec.Limits.Time = max(time.Until(end).Round(time.Second), time.Second)
		}
		if p.Limit > 0 {
			spec.Limits.Output = 2 * max(p.Limit, 16<<10) // half of it is for the head
		}
		res, err := sandbox.Run(ctx, spec)
		if err != nil {
			return Exit{}, err
		}
		out := res.Stdout.Head
		if p.Limit > 0 && len(out) > p.Limit {
			out = out[:p.Limit]
		}
		x := Exit{Code: res.Exit, Stdout: out, Stderr: res.Stderr.Tail, Dropped: res.Stdout.Bytes - int64(len(out)),
			Used: res.End.Used(), Refused: res.Refused}
		if !res.Stderr.Truncated() {
			x.Stderr = res.Stderr.Head
		}
		return x, nil
	}
}

// Enforceable reports whether the Runner returned by Sandboxed for base can run a program on this
// machine, with the network or without. It returns nil if it can, and otherwise an error with the
// reason, sandbox.ErrUnenforced. It tries the level, which takes some tens of milliseconds.
func Enforceable(base sandbox.Spec, network bool) error {
	if err := networked(base, network); err != nil {
		return err
	}
	return sandbox.Check(base.Level)
}

func networked(base sandbox.Spec, network bool) error {
	if network && base.Level != sandbox.None && base.Proxy == nil {
		return fmt.Errorf("%w: the program needs the network, and level %s gives none where no host is named", sandbox.ErrUnenforced, base.Level)
	}
	return nil
}

// given returns the Spec with the paths of base and of the program's definition, all with links
// resolved.
func given(base sandbox.Spec, p Process) (sandbox.Spec, error) {
	spec := sandbox.Spec{Level: base.Level, Args: p.Args, Env: p.Env, Stdin: p.Stdin, Write: slices.Clone(base.Write),
		Read: slices.Clone(base.Read), Limits: base.Limits}
	if p.Network {
		spec.Proxy = base.Proxy
	}
	for _, l := range []struct {
		from []string
		to   *[]string
	}{{p.Write, &spec.Write}, {p.Read, &spec.Read}} {
		for _, path := range l.from {
			path, err := filepath.EvalSymlinks(path)
			if err != nil {
				return spec, err
			}
			*l.to = append(*l.to, path)
		}
	}
	if p.Dir != "" {
		dir, err := filepath.Abs(p.Dir)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return spec, err
		}
		spec.Dir = dir
		if !slices.ContainsFunc(spec.Write, func(w string) bool { return within(dir, w) }) {
			spec.Read = append(spec.Read, dir)
		}
	}
	if filepath.IsAbs(p.Args[0]) {
		file, err := filepath.EvalSymlinks(p.Args[0])
		if err != nil {
			return spec, err
		}
		spec.Args = append([]string{file}, p.Args[1:]...)
		if !within(file, "/usr") {
			spec.Read = append(spec.Read, file)
		}
	}
	return spec, nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
