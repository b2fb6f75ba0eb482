package outside

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/internal/procgroup"
	"github.com/pawl-go/pawl/sandbox"
)

// Sandboxed returns a Runner that runs programs in a sandbox. It sets the sandbox up once more
// beforehand, to see whether the program can start there. base contains the level of enforcement
// (Level), the paths that all programs may read and write, the paths that are hidden from them,
// their Limits, and the Proxy for programs that need the network. Its other fields are ignored. A
// program may also read its own file and its working directory, and use the paths in its
// definition. If Limits has no Time, a program has the timeout of its tool. If the machine cannot
// enforce the level, or a program needs the network and there is no Proxy, the program does not
// run, and the error is sandbox.ErrUnenforced.
func Sandboxed(base sandbox.Spec) Runner {
	return func(ctx context.Context, p Process) (Program, error) {
		if err := networked(base, p.Network); err != nil {
			return nil, err
		}
		spec, err := given(base, p)
		if err != nil {
			return nil, err
		}
		if err := startable(&spec); err != nil {
			return nil, err
		}
		if err := sandbox.Startable(ctx, spec); err != nil {
			return nil, err
		}
		return runIn(spec, p.Limit), nil
	}
}

// startable returns the error of a program that this machine cannot start, in a sandbox or without:
// the sandbox hides which formats are registered.
func startable(spec *sandbox.Spec) error {
	program := spec.Args[0]
	switch {
	case filepath.Base(program) == program:
		file, err := sandbox.LookPath(program, spec.Env)
		if err != nil {
			return err
		}
		program = file
	case spec.Dir == "" && !filepath.IsAbs(program):
		return nil // it is relative to a folder that the sandbox chooses
	}
	return procgroup.Startable(program, spec.Dir)
}

// runIn returns the program that runs in the sandbox of spec. limit is the number of bytes of its
// output to return.
func runIn(spec sandbox.Spec, limit int) Program {
	return func(ctx context.Context) (Exit, error) {
		if end, bounded := ctx.Deadline(); bounded && spec.Limits.Time == 0 {
			// In whole seconds, as errors show it. It is rounded up, since ctx ends in time anyway.
			left := time.Until(end) + time.Second - 1
			spec.Limits.Time = max(left.Truncate(time.Second), time.Second)
		}
		if limit > 0 {
			spec.Limits.Output = 2 * max(limit, 16<<10) // half of it is for the head
		}

		running, err := sandbox.Start(ctx, spec)
		if err != nil {
			return Exit{}, notStarted(err)
		}
		// From here on the program may have had an effect. The error of Wait is the end of ctx, or
		// says that the status of the program is unknown, as its result does.
		res, _ := running.Wait()
		return exitOf(res, limit), nil
	}
}

// exitOf returns the Exit of a program that ran, with limit bytes of its output; 0 means all that
// was stored.
func exitOf(res *sandbox.Result, limit int) Exit {
	out := res.Stdout.Head
	if limit > 0 && len(out) > limit {
		out = out[:limit]
	}
	x := Exit{
		Code:    res.Exit,
		Stdout:  out,
		Stderr:  res.Stderr.Tail,
		Dropped: res.Stdout.Bytes - int64(len(out)),
		Used:    res.End.Used(),
		Refused: res.Refused,
	}
	if !res.Stderr.Truncated() {
		x.Stderr = res.Stderr.Head
	}
	return x
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
		return fmt.Errorf("%w: the program needs the network, and level %s gives none where no host is named",
			sandbox.ErrUnenforced, base.Level)
	}
	return nil
}

// given returns the Spec with the paths of base and of the program's definition, all with links
// resolved.
func given(base sandbox.Spec, p Process) (sandbox.Spec, error) {
	spec := sandbox.Spec{
		Level:  base.Level,
		Args:   p.Args,
		Env:    p.Env,
		Stdin:  p.Stdin,
		Hide:   base.Hide,
		Limits: base.Limits,
	}
	if p.Network {
		spec.Proxy = base.Proxy
	}
	// Links are resolved here, so that a link that changes afterwards opens nothing else.
	write, err := targets(p.Write)
	if err != nil {
		return spec, err
	}
	read, err := targets(p.Read)
	if err != nil {
		return spec, err
	}
	spec.Write = slices.Concat(base.Write, write)
	spec.Read = slices.Concat(base.Read, read)

	if p.Dir != "" {
		dir, err := filepath.Abs(p.Dir)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return spec, err
		}
		spec.Dir = dir
		// A program can read where it may write.
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

// targets returns the targets of paths: a sandbox allows places and not names of places.
func targets(paths []string) ([]string, error) {
	var list []string
	for _, path := range paths {
		path, err := filepath.EvalSymlinks(path)
		if err != nil {
			return nil, err
		}
		list = append(list, path)
	}
	return list, nil
}

// within reports whether path is dir or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}
