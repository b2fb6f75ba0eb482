// Command wire translates requests and replies to and from a provider's form.
//
//	go run ./pawltest/cmd/wire encode --api API [--stream] < request.json
//	go run ./pawltest/cmd/wire decode --api API [--sse] [--status N] [--header H] < body
//	go run ./pawltest/cmd/wire decode --lines [--api API] < log.jsonl
//	go run ./pawltest/cmd/wire check --api API < messages.json
//
// It needs no key and no network. It is for authors and testers of adapters.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-go/pawl/provider"
)

const usage = `Usage: wire encode|decode|check [flags]

API is openai-responses, openai-chat, anthropic-messages (or anthropic) or gemini.

wire encode --api API [--stream] reads a request from standard input and prints the body of the
request to the provider. The request is
{"model","messages","tools","choice","output","settings"}. With --stream it asks for a streamed
reply. A request that the API cannot express is an error, status 2. A history that the API rejects
is repaired, with a notice on standard error for each repair.

    wire encode --api anthropic-messages < request.json

wire decode --api API [flags] reads the body of a reply from standard input, and prints the response
as one line of JSON, or the error of the reply:
{"error":{"code","status","retryable","retry_after","message"}}, with retry_after in seconds.

    --sse                    the body is a stream of events
    --status N               the HTTP status of the reply; default: 200
    --header 'NAME: VALUE'   a header of the reply, such as 'retry-after: 3'; may be repeated
    --lines                  read {"id","api","streaming","status","headers","content_type",
                             "body"|"body_b64"} a line, and print a line for each; --api is for
                             lines without an api

With --lines it prints {"id","response"} or {"id","error"} for each line, in order. A line of
another form gives an error and does not stop the rest; unknown members of a line are ignored.

An error in a reply is a result of this command, so the status is 0 either way. It is 2 if the
input cannot be read.

    wire decode --api openai-responses < reply.json

wire check --api API reads a list of messages, or the output of pawl run --save, from standard
input, and prints the faults of the history and the repaired history as one line of JSON:
{"faults":[{"code","message","part","text"}],"mends":[{"code","message","part","text","did"}],"messages":[…]}.

"messages" are the repaired messages, as a request to the API needs them. So calls of the last
reply without a result count as faults, too. Models repair each request in the same way. Input
that is no list of messages (an unknown role, a part of an unknown type) is an error, status 2.

    wire check --api openai-chat < messages.json
`

func main() { os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// The statuses of the program.
const (
	statusFailed = 1
	statusUsage  = 2
)

// usageError is a fault of the command line or the input.
type usageError struct {
	error
	hint string // a correct form; empty means none
}

func wrong(hint, format string, args ...any) error {
	return usageError{fmt.Errorf(format, args...), hint}
}

// command executes a command line and returns the status.
func command(args []string, in io.Reader, out, stderr io.Writer) int {
	err := dispatch(args, in, out, stderr)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	}
	fmt.Fprintf(stderr, "wire: %v\n", err)
	var u usageError
	if !errors.As(err, &u) {
		return statusFailed
	}
	if u.hint != "" {
		fmt.Fprintf(stderr, "wire: hint: %s\n", u.hint)
	}
	return statusUsage
}

func dispatch(args []string, in io.Reader, out, stderr io.Writer) error {
	if len(args) == 0 {
		return wrong("wire --help", "which command? encode, decode or check")
	}
	flags := flag.NewFlagSet("wire", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	api := flags.String("api", "", "")
	var do func() error
	switch args[0] {
	case "encode":
		c := encodeCommand{}
		flags.BoolVar(&c.stream, "stream", false, "")
		do = func() (err error) {
			c.api, err = needed(*api)
			if err != nil {
				return err
			}
			return c.run(in, out, stderr)
		}
	case "decode":
		c := decodeCommand{status: 200}
		flags.BoolVar(&c.sse, "sse", false, "")
		flags.BoolVar(&c.lines, "lines", false, "")
		flags.Func("status", "", func(text string) (err error) {
			c.status, err = strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("want a whole number, got %q", text)
			}
			return nil
		})
		flags.Func("header", "", func(text string) error {
			c.header = append(c.header, text)
			return nil
		})
		do = func() error {
			c.api = *api
			return c.run(in, out)
		}
	case "check":
		do = func() error {
			a, err := needed(*api)
			if err != nil {
				return err
			}
			return check(a, in, out)
		}
	case "help", "-h", "-help", "--help":
		return flag.ErrHelp
	default:
		return wrong("wire --help", "no command is named %q: there are encode, decode and check", args[0])
	}
	if err := flags.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return wrong("wire --help", "%w", err)
	}
	if flags.NArg() > 0 {
		return wrong("wire --help", "%s takes flags only, not %q", args[0], flags.Arg(0))
	}
	return do()
}

// needed returns the API of a command that cannot do without.
func needed(name string) (provider.API, error) {
	if name == "" {
		return provider.API{}, wrong("wire --help", "missing flags: --api=API")
	}
	a, ok := provider.FindAPI(name)
	if !ok {
		return a, wrong("wire --help", `--api must be one of "%s" but got %q`, strings.Join(names(true), `","`), name)
	}
	return a, nil
}

// names returns the names of the APIs, and if wanted their aliases.
func names(aliases bool) []string {
	var all []string
	for _, a := range provider.APIs() {
		all = append(all, a.Name)
		if aliases {
			all = slices.Concat(all, a.Aliases)
		}
	}
	return all
}
