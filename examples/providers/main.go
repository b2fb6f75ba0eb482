// Command providers is one conversation with several models in turn: each line of the input goes to
// the next model of the command line. Calls, results and reasoning move with the conversation. If a
// provider has no capacity, the next model answers. At the end the last model fills in a form,
// which is shown while it grows. A model is PROVIDER:MODEL, PROVIDER:MODEL=BASE_URL, or
// pipe:PROGRAM (pipe.go). Keys come from the environment.
//
//	go run ./examples/providers openai:gpt-6.1-terra anthropic:claude-sonnet-5-5 ollama:qwen3:4b
package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/observe"
	"github.com/pawl-go/pawl/policy"
	"github.com/pawl-go/pawl/provider"
)

// Trip is the form at the end.
type Trip struct {
	Cities []string `json:"cities"`
	Advice string   `json:"advice"`
}

type lookup struct {
	City string `json:"city" jsonschema:"the city's English name"`
}

func main() {
	if len(os.Args) < 3 {
		log.Fatal("usage: providers MODEL MODEL…")
	}
	weather := pawl.Func("weather", "Current weather in a city.",
		func(_ context.Context, in lookup) (string, error) { return "rain in " + in.City, nil })
	if _, err := talk(context.Background(), os.Args[1:], weather, os.Stdin, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// open opens a model of the command line.
func open(arg string) (llm.Model, error) {
	name, base, _ := strings.Cut(arg, "=")
	if program, ok := strings.CutPrefix(name, "pipe:"); ok {
		return pipe(program), nil
	}
	// no retries, because the next model answers
	return provider.Open(name, &provider.Options{BaseURL: base, Retries: -1})
}

// talk reads a question a line and returns the conversation, which ends with a Trip.
func talk(ctx context.Context, names []string, tool *pawl.Tool, in io.Reader, out io.Writer) (*pawl.Result, error) {
	var models []llm.Model
	for _, name := range names {
		m, err := open(name)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	agent := &pawl.Agent{Tools: []pawl.Toolset{tool}}
	res := new(pawl.Result)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		agent.Model = models[0]
		models = append(models[1:], models[0])
		agent.Middleware = []pawl.Middleware{policy.Fallback{Models: slices.Clone(models[:len(models)-1])}.Middleware()}
		var err error
		res, err = pawl.Collect(agent.ResumeStream(ctx, res, llm.User(lines.Text())), func(e pawl.Event) {
			if e.Kind == pawl.EventNotice && e.Code == "fallback" {
				fmt.Fprintln(out, e.Text)
			}
		})
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(out, "%s: %s\n", res.Steps[len(res.Steps)-1].Response.Model, res.Text())
	}
	agent.Output = pawl.SchemaFor[Trip]()
	form := observe.Partial[Trip]{Strings: true}
	return pawl.Collect(agent.ResumeStream(ctx, res, llm.User("Sum up the trip.")), func(e pawl.Event) {
		if trip, ok := form.Add(e); ok {
			fmt.Fprintf(out, "%+v\n", trip)
		}
	})
}
