package assemble

// flags.go: the flags that several commands share: agent, limits, store, durable runs. Their texts
// are in cli/flags.txt.

import (
	"cmp"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
	"github.com/pawl-go/pawl/internal/agentfile"
	"github.com/pawl-go/pawl/store"
)

// Apply writes the given flags of the struct flags over the agent: those with a line "sets" in
// flags.txt. A flag with its zero value is not given.
func Apply(flags any, a *agentfile.Agent) {
	v := reflect.ValueOf(flags).Elem()
	for _, f := range reflect.VisibleFields(v.Type()) {
		path := cli.FlagTexts()[f.Tag.Get("help")].Sets
		flag := v.FieldByIndex(f.Index)
		if path == "" || flag.IsZero() {
			continue
		}
		if field := fieldAt(reflect.ValueOf(a).Elem(), path); field.IsValid() {
			field.Set(flag.Convert(field.Type()))
			a.Override(path)
		}
	}
}

// fieldAt returns the field of v at a path. It makes the structs on the path that are nil. The
// result is not valid if a list on the path is empty.
func fieldAt(v reflect.Value, path string) reflect.Value {
	for name := range strings.SplitSeq(path, ".") {
		name, first := strings.CutSuffix(name, "[0]")
		if v.Kind() == reflect.Pointer {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.FieldByNameFunc(func(field string) bool {
			f, _ := v.Type().FieldByName(field)
			return f.Tag.Get("yaml") == name
		})
		if first {
			if v.Len() == 0 {
				return reflect.Value{}
			}
			v = v.Index(0)
		}
	}
	return v
}

// unnamed matches the paths whose findings describe a flag without its name.
var unnamed = regexp.MustCompile(`^(model(\[\d+\](\.name)?)?|store(\..*)?)$`)

// flagAt returns the flag that sets the value at a path of the agent, or the flags below the path.
// It returns the path itself if there is none.
func flagAt(path string) string {
	if unnamed.MatchString(path) {
		return ""
	}
	var below []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[AgentFlags]()) {
		text := cli.FlagTexts()[f.Tag.Get("help")]
		key := text.Sets + text.About
		switch {
		case key == "":
		case within(path, key):
			return FlagName(f)
		case within(key, path):
			below = append(below, FlagName(f))
		}
	}
	return cmp.Or(strings.Join(below, ", "), path)
}

// within reports whether a path is equal to top or below it.
func within(path, top string) bool {
	rest, ok := strings.CutPrefix(path, top)
	if !ok || rest == "" {
		return ok
	}
	return rest[0] == '.' || rest[0] == '['
}

// FileFlags select an agent in a file.
type FileFlags struct {
	Agent string `placeholder:"NAME" help:"Which agent of the file, where it has several."`
}

// IsAgentFile reports whether an argument is the name of a file with agents, and not a task.
func IsAgentFile(arg string) bool {
	return !strings.ContainsAny(arg, " \n") && (strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml"))
}

// Read returns the agent of the file called name. An empty name means an empty agent, for flags
// alone.
func (f *FileFlags) Read(name string, sys *cli.System) (*agentfile.Agent, error) {
	if name == "" {
		if f.Agent != "" {
			return nil, cli.Usage("pawl run FILE.yaml --agent NAME", "--agent: there is no file with agents")
		}
		return new(agentfile.Agent), nil
	}

	file, err := agentfile.Load(name, &agentfile.LoadOptions{Getenv: sys.Env})
	if err != nil {
		return nil, Misconfigured(err)
	}
	a, err := file.Agent(f.Agent)
	if err != nil {
		return nil, Misconfigured(err)
	}
	for _, w := range a.Warnings() {
		sys.Notice(w.Error())
	}
	return a, nil
}

// driverFlags select how a model calls tools.
type driverFlags struct {
	Driver   string `placeholder:"DRIVER" help:"@driver_driver"`
	Format   string `name:"react-format" placeholder:"FORMAT" help:"@driver_format" rare:""`
	Parallel bool   `name:"react-parallel" help:"@driver_parallel" rare:""`
	Lenient  bool   `name:"react-lenient" help:"@driver_lenient" rare:""`
	Leaks    string `name:"leaked-calls" placeholder:"WHEN" help:"@driver_leaks" rare:""`
}

// DurableFlags store a run step by step, so that it survives this process.
type DurableFlags struct {
	Durable bool           `group:"durable" help:"@durable_durable"`
	Run     string         `group:"durable" name:"run" placeholder:"ID" help:"@durable_run"`
	Lease   *time.Duration `group:"durable" name:"lease" placeholder:"TIME" help:"@durable_lease"`
}

// Check reports flags that contradict each other.
func (f *DurableFlags) Check() error {
	switch {
	case !f.Durable && f.Run != "":
		return cli.Usage("pawl run --durable --run "+f.Run+" …", "--run: the run is not durable")
	case !f.Durable && f.Lease != nil:
		return cli.Usage("pawl run --durable --lease TIME …", "--lease: the run is not durable")
	case f.Lease != nil && *f.Lease < time.Second:
		return cli.Usage("a second and more, such as 30s", "--lease %v is too short", *f.Lease)
	}
	return f.CheckID()
}

// CheckID returns an error if the ID of the run is not usable. An empty ID is.
func (f *DurableFlags) CheckID() error {
	if f.Run == LastRun {
		return cli.Usage("choose another name", "--run last: the word last means the last run")
	}
	if err := store.CheckID(f.Run); f.Run != "" && err != nil {
		return cli.Usage("a name such as invoice-7", "--run: %v", err)
	}
	return nil
}

// limitFlags limit a run. In a chat each turn is a run.
type limitFlags struct {
	MaxRounds *cli.Whole     `name:"max-rounds" placeholder:"N" help:"@limit_rounds"`
	MaxCalls  *cli.Whole     `name:"max-calls" placeholder:"N" help:"@limit_calls"`
	MaxTokens *cli.Whole     `name:"max-tokens" placeholder:"N" help:"@limit_tokens"`
	MaxCost   *float64       `name:"max-cost" placeholder:"USD" help:"@limit_cost"`
	MaxTime   *time.Duration `name:"max-time" placeholder:"TIME" help:"@limit_time"`
}

// raised returns the hint for a run that a limit ended: the flag that allows more, or what else may
// help.
func raised(name pawl.LimitName) string {
	for _, limit := range pawl.LimitInfos() {
		switch {
		case limit.Name != name:
		case limit.Flag != "":
			return fmt.Sprintf("%s %s allows more, such as: pawl run %s %s TASK",
				limit.Flag, limit.Unit, limit.Flag, limit.Example)
		case limit.Raise != "":
			return limit.Raise + ": pawl models list"
		}
	}
	return "the flags that set limits are listed by: pawl run --help"
}

// OutsideFlags name files that define tools: programs, HTTP requests and OpenAPI documents.
type OutsideFlags struct {
	ToolFile      []string `group:"tools" sep:"none" placeholder:"FILE" help:"@outside_toolfile"`
	AllowCommands bool     `group:"tools" help:"@outside_allowcommands"`
}

// EmbedFlags name the embedding model.
type EmbedFlags struct {
	Embed    string      `group:"store" placeholder:"PROVIDER:MODEL" help:"@embed_embed" rare:""`
	EmbedURL cli.Address `group:"store" name:"embed-url" placeholder:"URL" help:"@embed_embedurl"`
}

// StoreFlags name the database, the tenant and the user.
type StoreFlags struct {
	DB     string `group:"store" name:"db" placeholder:"FILE" help:"@store_db"`
	Tenant string `group:"store" placeholder:"NAME" help:"@store_tenant" rare:""`
	User   string `group:"store" placeholder:"NAME" help:"@store_user"`
}

func (f *StoreFlags) store() agentfile.Store {
	return agentfile.Store{DB: f.DB, Tenant: f.Tenant, User: f.User}
}

// Scope returns the tenant and the user of the flags.
func (f *StoreFlags) Scope() store.Scope { return f.store().Scope() }

// Open opens the database. create says that a missing database is created. The caller closes it.
func (f *StoreFlags) Open(sys *cli.System, create bool) (*agentfile.Database, store.Store, error) {
	d := agentfile.NewDatabase(f.store(), sys.Env, create)
	db, err := d.Open()
	if err != nil {
		return nil, nil, Misconfigured(err)
	}
	return d, db, nil
}

// SharedFlag includes documents of all users in a search.
type SharedFlag struct {
	Shared bool `group:"store" help:"@shared_flag_shared" rare:""`
}

// ToolFlags set what the built-in tools can access.
type ToolFlags struct {
	Root             string         `placeholder:"DIR" help:"@tool_root"`
	HTTPAllow        []string       `name:"http-allow" placeholder:"HOST" help:"@tool_httpallow"`
	Sandbox          string         `placeholder:"LEVEL" help:"@tool_sandbox"`
	Hosts            []string       `name:"sandbox-host" placeholder:"HOST" help:"@tool_hosts"`
	Toolchain        []string       `placeholder:"NAME" help:"@tool_toolchain"`
	SandboxPath      []string       `placeholder:"DIR" help:"@tool_path" rare:""`
	SandboxRead      []string       `placeholder:"PATH" help:"@tool_read" rare:""`
	SandboxEnv       []string       `sep:"none" placeholder:"NAME=VALUE" help:"@tool_env" rare:""`
	SandboxTime      *time.Duration `placeholder:"TIME" help:"@tool_time" rare:""`
	SandboxMemory    *cli.Whole     `placeholder:"MIB" help:"@tool_memory" rare:""`
	SandboxProcesses *cli.Whole     `placeholder:"N" help:"@tool_processes" rare:""`
	Skills           []string       `sep:"none" placeholder:"DIR" help:"@tool_skills"`
	Zone             string         `placeholder:"ZONE" help:"@tool_zone" rare:""`
	CodeFlags
	PlanFlags
	StoreFlags
	EmbedFlags
	SharedFlag
}

// CodeFlags select the interpreter for programs of the code tools.
type CodeFlags struct {
	Code string `group:"tools" placeholder:"NAME" help:"@code_code" rare:""`
}

// PlanFlags set the abilities of plans of the plan tools.
type PlanFlags struct {
	DataFlow bool `group:"tools" name:"data-flow" help:"@plan_dataflow" rare:""`
}
