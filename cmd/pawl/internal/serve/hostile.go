package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/pawltest"
	"github.com/pawl-go/pawl/pawltest/hostile"
	"github.com/pawl-go/pawl/provider"
)

// HostileCmd plays models that behave badly.
type HostileCmd struct {
	Run   hostileRunCmd   `cmd:"" help:"@hostile_run"`
	Serve hostileServeCmd `cmd:"" help:"Offer them on a port, to any runtime in any language."`
}

type hostileRunCmd struct {
	API     string `name:"api" default:"all" placeholder:"API" help:"@hostile_run_api"`
	Only    string `placeholder:"REGEXP" help:"Play only the behaviours whose id has a match."`
	JSON    bool   `name:"json" help:"Print the rows as a list in JSON."`
	Verbose bool   `help:"Print all that was wrong, and what each behaviour stands for."`
}

// Run plays the behaviours and prints the table as it grows.
func (c *hostileRunCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()
	apis, err := hostileAPIs(c.API)
	if err != nil {
		return err
	}
	only, err := regexp.Compile(c.Only)
	if err != nil {
		return cli.Usage("such as '^args-'", "--only: %v", err)
	}
	all := hostile.Behaviours()
	all = slices.DeleteFunc(all, func(b hostile.Behaviour) bool { return !only.MatchString(b.ID) })
	if len(all) == 0 {
		return cli.Usage("pawl hostile run prints all ids", "--only %s: no behaviour has such an id", c.Only)
	}
	if !c.JSON {
		hostile.WriteHead(sys.Out, apis)
	}
	begun := time.Now()
	rows, err := hostile.Play(ctx, hostile.Agent(hostileModels), all, &hostile.PlayOptions{APIs: apis,
		Done: c.printer(sys.Out, apis, all)})
	if err != nil {
		return cli.Fail(cli.StatusInterrupted, nil, "")
	}
	plays, failed := hostile.Count(rows)
	if c.JSON {
		e := json.NewEncoder(sys.Out)
		e.SetIndent("", " ")
		if err := e.Encode(rows); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(sys.Out, "\nbehaviours: %d; plays: %d in %.0f s; failed: %d\n", len(rows), plays,
			time.Since(begun).Seconds(), failed)
	}
	if failed > 0 {
		return cli.Fail(cli.StatusFailed, fmt.Errorf("%d of %d plays failed", failed, plays),
			"pawl hostile run --only ID --verbose prints all faults")
	}
	return nil
}

// printer returns a function that prints rows in order, each as soon as possible.
func (c *hostileRunCmd) printer(w io.Writer, apis []string, all []hostile.Behaviour) func(hostile.Row) {
	if c.JSON {
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
			hostile.WriteRow(w, &r, apis)
			if c.Verbose {
				fmt.Fprintf(w, "    stands for %s\n", strings.Join(r.Meets, " "))
				for _, s := range r.Scores {
					for _, wrong := range s.Wrong {
						fmt.Fprintf(w, "    %s, %s: %s\n", s.API, s.Mode, cli.Visible(wrong))
					}
				}
			}
		}
	}
}

// hostileAPIs parses a list of APIs.
func hostileAPIs(list string) ([]string, error) {
	if list == "all" || list == "" {
		return pawltest.APIs(), nil
	}
	apis := strings.Split(list, ",")
	for _, api := range apis {
		if !slices.Contains(pawltest.APIs(), api) {
			return nil, cli.Usage("there are: "+strings.Join(pawltest.APIs(), ", "), "--api: no API is named %q", api)
		}
	}
	return apis, nil
}

// hostileModels opens the adapter of an API.
func hostileModels(api, base string, silence time.Duration) (llm.Model, error) {
	name := map[string]string{pawltest.Chat: "openai-chat", pawltest.Responses: "openai",
		pawltest.Anthropic: "anthropic", pawltest.Gemini: "gemini"}[api]
	return provider.Open(name+":hostile", &provider.Options{BaseURL: base, Key: "none-needed",
		FirstByteTimeout: silence, SilenceTimeout: silence})
}

type hostileServeCmd struct {
	Addr string `default:"127.0.0.1:0" placeholder:"HOST:PORT" help:"@hostile_serve_addr"`
	API  string `name:"api" default:"all" placeholder:"API" help:"@hostile_serve_api"`
}

// Run serves until it is interrupted.
func (c *hostileServeCmd) Run(sys *cli.System) error {
	ctx, stop := cli.Interruptible(context.Background(), io.Discard)
	defer stop()
	return c.serve(ctx, sys)
}

func (c *hostileServeCmd) serve(ctx context.Context, sys *cli.System) error {
	apis, err := hostileAPIs(c.API)
	if err != nil {
		return err
	}
	all := hostile.Behaviours()
	server, err := hostile.NewServer(all, &hostile.ServerOptions{Addr: c.Addr, APIs: apis})
	if err != nil {
		return cli.Usage("--addr takes HOST:PORT; port 0 is a free one", "--addr %s: %s", c.Addr,
			strings.TrimPrefix(err.Error(), "pawltest: "))
	}
	fmt.Fprintf(sys.Out, "%s\n", server.Root)
	fmt.Fprintf(sys.Err, "%d behaviours over %s. %s/ lists them; Ctrl-C ends.\n", len(all), strings.Join(apis, ", "),
		server.Root)
	<-ctx.Done()
	err = server.Close()
	fmt.Fprintln(sys.Err, "stopped")
	return err
}
