// Command hostile plays models that behave badly: to pawl, or on a port to any runtime.
//
//	go run ./pawltest/hostile/cmd/hostile run [--api API] [--only REGEXP] [--json] [--verbose]
//	go run ./pawltest/hostile/cmd/hostile serve [--addr HOST:PORT] [--api API]
//
// No key is needed, and nothing leaves the machine. docs/hostile.md has the table.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostile"
	"github.com/pawl-go/pawl/provider"
)

const usage = `Usage: hostile run|serve [flags]

hostile run prints a line for each behaviour: its id, the result of each API (ok, fail, the one mode
that failed, or - if the API cannot express it), and what the model does, or what was wrong. The
status is 1 if something failed.

    hostile run
    hostile run --only '^args-' --api anthropic-messages
    hostile run --only unknown-tool --verbose

hostile serve prints the address, and serves until Ctrl-C. The path or the model's name (hostile/ID)
selects the behaviour:

    hostile serve --addr 127.0.0.1:4010
    curl -s http://127.0.0.1:4010/b/unknown-tool
    OPENAI_BASE_URL=http://127.0.0.1:4010/b/unknown-tool/v1 your-agent …
    curl -s http://127.0.0.1:4010/b/unknown-tool/verdict

/ lists the behaviours, /index.json has the tools to define and the required result of each.
/b/ID/verdict shows what your runtime did, as far as the wire shows it.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the program
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// The statuses of the program.
const (
	statusFailed      = 1
	statusUsage       = 2
	statusInterrupted = 130
)

// usageError is a fault of the command line.
type usageError struct{ error }

// errInterrupted ends a run whose context is done.
var errInterrupted = errors.New("interrupted")

// command executes a command line and returns the status.
func command(ctx context.Context, args []string, out, stderr io.Writer) int {
	err := dispatch(ctx, args, out, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case errors.Is(err, errInterrupted):
		return statusInterrupted
	}
	fmt.Fprintf(stderr, "hostile: %v\n", err)
	if errors.As(err, new(usageError)) {
		return statusUsage
	}
	return statusFailed
}

func dispatch(ctx context.Context, args []string, out, stderr io.Writer) error {
	if len(args) == 0 {
		return usageError{errors.New("which command? run or serve; --help describes them")}
	}
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	api := flags.String("api", "all", "")
	var do func(apis []string) error
	switch args[0] {
	case "run":
		c := runCommand{out: out}
		flags.StringVar(&c.only, "only", "", "")
		flags.BoolVar(&c.json, "json", false, "")
		flags.BoolVar(&c.verbose, "verbose", false, "")
		do = func(apis []string) error { return c.run(ctx, apis) }
	case "serve":
		addr := flags.String("addr", "127.0.0.1:0", "")
		do = func(apis []string) error { return serve(ctx, *addr, apis, out, stderr) }
	case "help", "-h", "-help", "--help":
		return flag.ErrHelp
	default:
		return usageError{fmt.Errorf("no command is named %q: there are run and serve", args[0])}
	}
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return usageError{err}
	}
	if flags.NArg() > 0 {
		return usageError{fmt.Errorf("%s takes flags only, not %q", args[0], flags.Arg(0))}
	}
	apis, err := parseAPIs(*api)
	if err != nil {
		return err
	}
	return do(apis)
}

// parseAPIs parses a list of APIs.
func parseAPIs(list string) ([]string, error) {
	if list == "all" || list == "" {
		return pawltest.APIs(), nil
	}
	apis := strings.Split(list, ",")
	for _, api := range apis {
		if !slices.Contains(pawltest.APIs(), api) {
			return nil, usageError{fmt.Errorf("--api: no API is named %q: there are %s", api,
				strings.Join(pawltest.APIs(), ", "))}
		}
	}
	return apis, nil
}

type runCommand struct {
	out           io.Writer
	only          string
	json, verbose bool
}

// run plays the behaviours and prints the table as it grows.
func (c *runCommand) run(ctx context.Context, apis []string) error {
	only, err := regexp.Compile(c.only)
	if err != nil {
		return usageError{fmt.Errorf("--only takes a regular expression, such as '^args-': %w", err)}
	}
	all := hostile.Behaviours()
	all = slices.DeleteFunc(all, func(b hostile.Behaviour) bool { return !only.MatchString(b.ID) })
	if len(all) == 0 {
		return usageError{fmt.Errorf("--only %s: no behaviour has such an id; hostile run prints all ids", c.only)}
	}
	if !c.json {
		hostile.WriteHead(c.out, apis)
	}
	begun := time.Now()
	rows, err := hostile.Play(ctx, hostile.Agent(openModel), all, &hostile.PlayOptions{APIs: apis,
		Done: c.printer(apis, all)})
	if err != nil {
		return errInterrupted
	}
	plays, failed := hostile.Count(rows)
	if c.json {
		e := json.NewEncoder(c.out)
		e.SetIndent("", " ")
		if err := e.Encode(rows); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.out, "\nbehaviours: %d; plays: %d in %.0f s; failed: %d\n", len(rows), plays,
			time.Since(begun).Seconds(), failed)
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d plays failed; run --only ID --verbose prints all faults", failed, plays)
	}
	return nil
}

// printer returns a function that prints rows in order, each as soon as possible.
func (c *runCommand) printer(apis []string, all []hostile.Behaviour) func(hostile.Row) {
	if c.json {
		return nil
	}
	done := map[string]hostile.Row{}
	next := 0
	return func(r hostile.Row) {
		done[r.ID] = r
		for ; next < len(all); next++ {
			r, ok := done[all[next].ID]
			if !ok {
				return
			}
			hostile.WriteRow(c.out, &r, apis)
			if c.verbose {
				fmt.Fprintf(c.out, "    stands for %s\n", strings.Join(r.Meets, " "))
				for _, s := range r.Scores {
					for _, wrong := range s.Wrong {
						fmt.Fprintf(c.out, "    %s, %s: %q\n", s.API, s.Mode, wrong)
					}
				}
			}
		}
	}
}

// openModel opens the adapter of an API.
func openModel(api, base string, silence time.Duration) (llm.Model, error) {
	name := map[string]string{pawltest.Chat: "openai-chat", pawltest.Responses: "openai",
		pawltest.Anthropic: "anthropic", pawltest.Gemini: "gemini"}[api]
	return provider.Open(name+":hostile", &provider.Options{BaseURL: base, Key: "none-needed",
		FirstByteTimeout: silence, SilenceTimeout: silence})
}

// serve offers the behaviours on a port until ctx ends.
func serve(ctx context.Context, addr string, apis []string, out, stderr io.Writer) error {
	all := hostile.Behaviours()
	server, err := hostile.NewServer(all, &hostile.ServerOptions{Addr: addr, APIs: apis})
	if err != nil {
		return usageError{fmt.Errorf("--addr %s: %s; it takes HOST:PORT, and port 0 is a free one", addr,
			strings.TrimPrefix(err.Error(), "pawltest: "))}
	}
	fmt.Fprintf(out, "%s\n", server.Root)
	fmt.Fprintf(stderr, "%d behaviours over %s. %s/ lists them; Ctrl-C ends.\n", len(all), strings.Join(apis, ", "),
		server.Root)
	<-ctx.Done()
	err = server.Close()
	fmt.Fprintln(stderr, "stopped")
	return err
}
