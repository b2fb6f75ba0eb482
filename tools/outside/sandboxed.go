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

// Sandboxed returns a Runner that runs programs in a sandbox. base says how hard it holds them (Level), what all of them may read and write beside their own file,
// the folder they start in, which they may read, and what their definition names, their Limits, and the Proxy of those that need the network; the rest of it is not used.
// Without a Time in Limits a program has that of its tool. Where the machine cannot enforce the level, no program runs; nor does one that needs the network and has no Proxy.
// The error is then sandbox.ErrUnenforced.
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
		x := Exit{Code: res.Exit, Stdout: out, Stderr: res.Stderr.Tail, Dropped: res.Stdout.Bytes - int64(len(out)), Used: res.End.Used(), Refused: res.Refused}
		if !res.Stderr.Truncated() {
			x.Stderr = res.Stderr.Head
		}
		return x, nil
	}
}

// Enforceable says whether the Runner that Sandboxed makes of base can run a program on this machine, with the network or without, and why not. The error is
// sandbox.ErrUnenforced. It tries the level out, which takes some tens of milliseconds.
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

// given is the Spec with what base and the program's definition name, each at the place that its path leads to.
func given(base sandbox.Spec, p Process) (sandbox.Spec, error) {
	spec := sandbox.Spec{Level: base.Level, Args: p.Args, Env: p.Env, Stdin: p.Stdin, Write: slices.Clone(base.Write), Read: slices.Clone(base.Read), Limits: base.Limits}
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

// within reports whether path is dir, or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
