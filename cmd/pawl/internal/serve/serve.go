package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/assemble"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/mcp"
	"github.com/pawl-go/pawl/redact"
	"github.com/pawl-go/pawl/server"
	"github.com/pawl-go/pawl/server/api"
	"github.com/pawl-go/pawl/store"
	"github.com/pawl-go/pawl/tools/outside"
	"github.com/pawl-go/pawl/tools/schedule"
	"github.com/pawl-go/pawl/viewer"
)

// Cmd is the command serve: agents over HTTP.
type Cmd struct {
	Files      []string      `arg:"" name:"FILE.yaml" help:"@serve_files"`
	HTTP       string        `default:"127.0.0.1:8080" placeholder:"ADDR" help:"@serve_http"`
	TokenEnv   string        `name:"token-env" placeholder:"NAME" help:"@serve_tokenenv"`
	Tokens     string        `placeholder:"FILE" help:"@serve_tokens"`
	Host       []string      `placeholder:"HOST" help:"@serve_host"`
	Origin     []string      `placeholder:"ORIGIN" help:"@serve_origin"`
	Proxy      []string      `name:"trusted-proxy" placeholder:"NETWORK" help:"@serve_proxy"`
	Reasoning  string        `name:"openai-reasoning" enum:"on,off" default:"on" help:"@reasoning"`
	ShowTools  string        `name:"openai-tools" enum:"show,hide" default:"hide" help:"@calls"`
	MaxRuns    int           `name:"max-runs" default:"200" placeholder:"N" help:"@serve_maxruns"`
	Lease      time.Duration `default:"30s" placeholder:"TIME" help:"@serve_lease"`
	Queue      int           `default:"10000" placeholder:"N" help:"@serve_queue"`
	TenantRuns int           `name:"tenant-runs" placeholder:"N" help:"@serve_tenantruns"`
	AddrConns  int           `name:"ip-conns" default:"2048" placeholder:"N" help:"@serve_conns"`
	Drain      time.Duration `default:"30s" placeholder:"TIME" help:"@serve_drain"`
	A2A        bool          `name:"a2a" help:"@serve_a2a"`
	PublicURL  string        `name:"public-url" placeholder:"URL" help:"@serve_publicurl"`
	LinkKey    string        `name:"link-key-env" placeholder:"NAME" help:"@serve_linkkey"`
	LinkTime   time.Duration `default:"24h" placeholder:"TIME" help:"@serve_linktime"`
	Hold       bool          `name:"hold-approvals" help:"@serve_hold"`
	OTel       string        `name:"otel" placeholder:"URL" help:"@serve_otel"`
	Names      string        `name:"otel-names" placeholder:"NAMES" help:"@telemetry_names"`
	Content    bool          `name:"include-content" aliases:"tell-content" help:"@serve_content"`
	Schedules  bool          `default:"true" negatable:"" help:"@serve_schedules"`
	DB         string        `name:"db" placeholder:"FILE" help:"@serve_db"`
	Commands   bool          `name:"allow-commands" help:"@outside_allowcommands"`
}

// Run serves until a signal ends the program.
func (c *Cmd) Run(sys *cli.System) error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := cli.Interruptible(context.Background(), sys.Err)
	defer stop()

	// Building connects to servers and opens files, so the flags are checked before.
	addr, tokens, err := c.access(sys)
	if err != nil {
		return err
	}
	proxies, err := networks(c.Proxy)
	if err != nil {
		return err
	}
	key, err := c.linkKey(sys)
	if err != nil {
		return err
	}
	all, err := buildAll(ctx, sys, c.Files, c.DB, []string{c.Tokens}, c.Commands)
	if err != nil {
		return err
	}
	defer all.close()
	db, err := all.db.Create()
	if err != nil {
		return assemble.Misconfigured(err)
	}

	// The credentials that tools send for callers are secrets of every output.
	for _, token := range tokens {
		if err := all.secrets.Add(token.Upstream); err != nil {
			return cli.Usage("", "--tokens %s: upstream of %s: %v", c.Tokens, token.Name, err)
		}
	}
	o := c.options(sys, all, db)
	o.Access.Tokens = tokens
	o.Access.Proxies = proxies
	mcpCtx, endMCP := context.WithCancel(context.Background())
	defer endMCP()
	var s *server.Server // made below: it has the handler of the MCP service
	o.MCP, err = c.mcp(mcpCtx, all, db, func() *server.Server { return s })
	if err != nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}
	if err := c.measure(sys, all, o); err != nil {
		return err
	}
	notifier := c.notify(all, db, o, key, func() *server.Server { return s })
	s, err = server.New(all.agents, db, o)
	if err != nil {
		return cli.Fail(cli.StatusUsage, err, "")
	}
	if err := c.keep(ctx, sys, all, db); err != nil {
		return cli.Fail(cli.StatusFailed, err, "")
	}

	l, err := net.Listen("tcp", addr)
	if err != nil {
		return cli.Usage("", "--http: %v", err)
	}
	names := cli.Names(all.agents, func(a *pawl.Agent) string { return cli.Visible(a.Name) })
	fmt.Fprintf(sys.Err, "pawl: serving %s on http://%s\n", strings.Join(names, ", "), l.Addr())
	due := make(chan error, 1)
	go func() { due <- c.due(ctx, sys, all, s, db) }()
	notifier.start("http://"+l.Addr().String(), func(err error) { cli.Report(sys.Err, all.secrets.Error(err)) })
	// The streams of MCP's sessions stay open, and the server would wait for their end.
	context.AfterFunc(ctx, endMCP)
	// Serve returns after the active runs. Due schedules are finished too, before the database is
	// closed.
	err = s.Serve(ctx, l)
	stop()
	err = errors.Join(err, <-due)
	notifier.wait()
	if err != nil {
		return cli.Fail(cli.StatusFailed, err, "")
	}
	return nil
}

// check returns an error for numbers that no flag may have.
func (c *Cmd) check() error {
	switch {
	case c.Lease < time.Second:
		return cli.Usage("a second and more, such as 30s", "--lease %v is too short", c.Lease)
	case c.LinkTime < time.Minute:
		return cli.Usage("a minute and more, such as 24h", "--link-time %v is too short", c.LinkTime)
	case c.Drain < 0:
		return cli.Usage("0 cuts the calls at once", "--drain %v is less than 0", c.Drain)
	case c.Queue < 0 || c.TenantRuns < 0 || c.AddrConns < 0:
		return cli.Usage("", "--queue, --tenant-runs and --ip-conns take a number from 0")
	}
	return nil
}

// networks returns the networks of --trusted-proxy: addresses, or networks such as 10.0.0.0/8.
func networks(texts []string) (all []netip.Prefix, err error) {
	for _, text := range texts {
		network, err := netip.ParsePrefix(text)
		if a, bad := netip.ParseAddr(text); bad == nil {
			network, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return nil, cli.Usage("an address or a network, such as 10.0.0.5 or 10.0.0.0/8", "--trusted-proxy %s", text)
		}
		all = append(all, network)
	}
	return all, nil
}

// access returns the address to listen on, and the tokens that give access. An address that other
// machines reach needs a token.
func (c *Cmd) access(sys *cli.System) (addr string, tokens []api.Token, err error) {
	addr, local, err := listenOn("--http", c.HTTP)
	if err != nil {
		return "", nil, err
	}
	tokens, err = c.tokens(sys)
	if err != nil {
		return "", nil, err
	}
	if !local && len(tokens) == 0 {
		return "", nil, cli.Usage("--token-env NAME, or --tokens FILE",
			"--http %s: other machines could reach it, so it needs tokens", c.HTTP)
	}
	return addr, tokens, nil
}

// options returns what the flags and the files of the agents say about the server.
func (c *Cmd) options(sys *cli.System, all *served, db store.Store) *server.Options {
	o := &server.Options{
		Access: server.Access{Hosts: c.Host, Origins: c.Origin},
		Limits: server.Limits{
			AddressConns: cmp.Or(c.AddrConns, -1),
			Runs:         c.MaxRuns,
			TenantRuns:   c.TenantRuns,
			Queue:        c.Queue,
		},
		Times: server.Times{Lease: c.Lease, Drain: cmp.Or(c.Drain, -1)},
		Front: server.Front{
			About:         map[string]server.About{},
			OnDisconnect:  map[string]string{},
			HideReasoning: c.Reasoning == "off",
			ShowCalls:     c.ShowTools == "show",
			HoldApprovals: c.Hold,
		},
		Secrets:   all.secrets,
		Schedules: db,
		Memories:  db,
		Pages:     viewer.Handler(),
		Preview:   all.preview,
		Log:       slog.New(slog.NewTextHandler(sys.Err, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	if c.A2A {
		o.A2A = &server.A2A{URL: c.PublicURL}
	}

	for i, a := range all.agents {
		a.Artifacts = store.KeepArtifacts(db, nil)
		f := all.files[i]
		o.Front.OnDisconnect[a.Name] = f.Disconnect
		o.Front.About[a.Name] = server.About{
			Title:       f.Title,
			Description: f.Description,
			Window:      all.built[i].Window,
			Side:        server.Side{Model: all.built[i].Side, Allow: f.AllowsSide()},
		}
	}
	return o
}

// mcp returns the handler of /mcp, which offers the agents as tools, with the data of their files
// and of the client's runs. The agents have rules of their own.
func (c *Cmd) mcp(ctx context.Context, all *served, db store.Store, s func() *server.Server) (http.Handler, error) {
	service := &mcp.Service{
		Name:      "pawl",
		Version:   cli.Release(),
		Secrets:   all.secrets,
		Resources: data(db, s),
		Task:      func(id string) mcp.Task { return s().Runner(server.RunnerOptions{ID: id}) },
	}
	for i, a := range all.agents {
		service.Agents = append(service.Agents, mcp.Offer{
			Agent:       a,
			Title:       all.files[i].Title,
			Description: cmp.Or(all.files[i].Description, offered),
			// A call waits as long as its client does, also for a provider that is away: a client
			// whose call fails makes it again, and its run would go on in parallel with the new
			// one.
			Runner: func(id string) pawl.Runner {
				return s().Runner(server.RunnerOptions{ID: id, Agent: a.Name})
			},
		})
		if err := all.files[i].Offer(service, all.own); err != nil {
			return nil, err
		}
	}

	return service.Handler(ctx, &mcp.HTTPOptions{
		Hosts:   c.Host,
		Origins: c.Origin,
		// A session belongs to one user, and to what its token may read.
		User: func(r *http.Request) string {
			who, _ := store.ScopeFrom(r.Context())
			return fmt.Sprintf("%s\x00%s\x00%t", who.Tenant, who.User, server.MayRead(r.Context()))
		},
	})
}

// data returns the runs and artifacts of the client as resources.
func data(db store.Store, s func() *server.Server) []mcp.Resource {
	runs := mcp.Resource{
		URI:         "pawl://runs/{id}",
		Name:        "run",
		MIME:        "application/json",
		Description: "A run of an agent: its messages, calls and end.",
		Read: reader(func(ctx context.Context, _ store.Scope, id string) (m llm.Media, err error) {
			x, err := s().Export(ctx, id)
			if err == nil {
				m.Data, err = x.JSON()
			}
			return m, err
		}),
		Version: reader(func(ctx context.Context, who store.Scope, id string) (string, error) {
			head, err := db.JournalRun(ctx, who, id)
			return head.State + head.Head, err
		}),
		Values: reader(func(ctx context.Context, who store.Scope, prefix string) (ids []string, err error) {
			heads, err := db.JournalRuns(ctx, who, "", store.Page{After: prefix, Limit: 200})
			for _, head := range heads {
				ids = append(ids, head.ID)
			}
			return ids, err
		}),
	}
	artifacts := mcp.Resource{
		URI:  "pawl://artifacts/{+id}",
		Name: "artifact",
		Description: "A result that is too large for the model: " +
			"the ID of its run, a slash, and the ID of the result in the run.",
		Read: reader(func(ctx context.Context, who store.Scope, id string) (llm.Media, error) {
			// The ID of a run may have slashes, too: the key of the result begins at the last /run.
			i := max(strings.LastIndex(id, "/run/"), 0)
			a, err := db.Artifact(ctx, who, id[:i]+"/run", llm.Key(strings.TrimPrefix(id[i:], "/")))
			return llm.Media{MIME: cmp.Or(a.MIME, "text/plain"), Data: append([]byte(a.Text), a.Data...)}, err
		}),
	}
	return []mcp.Resource{runs, artifacts}
}

// reader returns a function of a resource for clients that may read, in their scope.
func reader[T any](f func(context.Context, store.Scope, string) (T, error)) func(context.Context, string) (T, error) {
	return func(ctx context.Context, value string) (out T, err error) {
		// Without the right to read, no run seems to exist.
		err = store.ErrNotFound
		who, _ := store.ScopeFrom(ctx)
		if server.MayRead(ctx) {
			out, err = f(ctx, who, value)
		}
		if errors.Is(err, store.ErrNotFound) {
			err = pawl.ErrNotFound
		}
		return out, err
	}
}

// tokens returns the tokens of the flags.
func (c *Cmd) tokens(sys *cli.System) ([]api.Token, error) {
	var all []api.Token
	if c.TokenEnv != "" {
		token := sys.Env(c.TokenEnv)
		// A short token can be found by trying.
		if len(token) < 16 {
			return nil, cli.Usage("export "+c.TokenEnv+"=$(openssl rand -hex 32)",
				"--token-env: the variable %s is empty, or too short for a token", c.TokenEnv)
		}
		all = append(all, api.Token{Name: c.TokenEnv, Token: token, Scopes: []api.Scope{api.ScopeAll}})
	}

	if c.Tokens != "" {
		f, err := os.Open(c.Tokens)
		if err != nil {
			return nil, cli.Usage("", "--tokens: %s", cli.Plain(err))
		}
		defer f.Close()
		list, err := api.ReadTokens(f)
		if err != nil {
			return nil, cli.Usage("docs/server.md has the form", "--tokens %s: %v", c.Tokens, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// served has the agents of all files.
type served struct {
	agents  []*pawl.Agent // calls that need approval are pending
	files   []*agentfile.Agent
	built   []*agentfile.Built
	works   []*schedule.Work // by agent
	secrets *redact.Redactor
	own     []string // files that no tool reaches
	db      *agentfile.Database
	closers []func()
}

func (s *served) close() {
	for _, f := range slices.Backward(s.closers) {
		f()
	}
}

// buildAll builds the agents of all files, for all users. Calls that need approval are pending. db
// overrides the database of the files; empty means no override. No tool reaches the files own, nor
// the state of any of the agents. commands runs the programs of command tools outside of the
// sandbox.
func buildAll(ctx context.Context, sys *cli.System, files []string, db string, own []string,
	commands bool) (_ *served, err error) {
	s := &served{own: own}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	options, err := assemble.BuildOptions(sys)
	if err != nil {
		return nil, err
	}
	options.ForAll = true
	if commands {
		options.Commands = outside.Exec
	}

	var agents []*agentfile.Agent
	for _, name := range files {
		file, err := agentfile.Load(name, &agentfile.LoadOptions{Getenv: sys.Env})
		if err != nil {
			return nil, assemble.Misconfigured(err)
		}
		for _, a := range file.Agents {
			for _, w := range a.Warnings() {
				sys.Notice(w.Error())
			}
			assemble.Apply(&assemble.StoreFlags{DB: db}, a)
			agents = append(agents, a)
			s.own = append(s.own, a.Own(sys.Env)...)
		}
	}

	// After all files were read: no agent's tools may reach the state of another agent.
	options.Own = s.own
	for _, a := range agents {
		built, err := a.Build(ctx, options)
		if err != nil {
			return nil, assemble.Misconfigured(err)
		}
		s.add(a, built)
	}

	var tools []*pawl.Tool
	var hidden []string
	for _, built := range s.built {
		tools = append(tools, built.Tools...)
		hidden = append(hidden, built.Hidden...)
	}
	s.secrets = assemble.Secrets(sys.Env, tools, hidden...)
	return s, nil
}

// add adds an agent that is built. The database of the first agent is the server's.
func (s *served) add(a *agentfile.Agent, built *agentfile.Built) {
	s.closers = append(s.closers, built.Close)
	if s.agents == nil {
		s.db = built.DB
	}
	s.agents = append(s.agents, built.Agent)
	s.files = append(s.files, a)
	s.built = append(s.built, built)
	s.works = append(s.works, &schedule.Work{Tools: assemble.Held(built.Rules, built.Tools)})
}

// keep stores the schedules of the files in db.
func (c *Cmd) keep(ctx context.Context, sys *cli.System, all *served, db store.Store) error {
	for i, a := range all.files {
		if !c.Schedules {
			break
		}
		if err := a.KeepSchedules(ctx, db, sys.Env, time.Now()); err != nil {
			return fmt.Errorf("the schedules of %s: %w", cli.Visible(all.agents[i].Name), err)
		}
	}
	return nil
}

// due executes due schedules until ctx ends.
func (c *Cmd) due(ctx context.Context, sys *cli.System, all *served, s *server.Server, db store.Store) error {
	if !c.Schedules {
		return nil
	}
	for i, w := range all.works {
		agent := all.agents[i].Name
		w.Run = func(id string) pawl.Runner { return s.Runner(server.RunnerOptions{ID: id, Agent: agent}) }
	}
	do := func(ctx context.Context, d store.Due, at time.Time) (schedule.Done, error) {
		for i, a := range all.files { // a schedule of no file is for the first agent
			if a.HasSchedule(d.Schedule.ID) {
				return all.works[i].Do(ctx, d, at)
			}
		}
		return all.works[0].Do(ctx, d, at)
	}
	r := &schedule.Runner{
		DB:     db,
		Poll:   10 * time.Second,
		Stop:   ctx.Done(), // what is due and begun is finished
		Do:     do,
		Report: func(err error) { cli.Report(sys.Err, all.secrets.Error(err)) },
	}
	return r.Run(context.Background())
}

// listenOn parses an address to listen on. local means that only this machine reaches it.
func listenOn(flag, addr string) (_ string, local bool, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", false, cli.Usage(flag+" 127.0.0.1:8080", "%s %s: want an address with a port", flag, addr)
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	a, err := netip.ParseAddr(host)
	return net.JoinHostPort(host, port), err == nil && a.IsLoopback(), nil
}
