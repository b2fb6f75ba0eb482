package assemble

import (
	"github.com/pawl-go/pawl/config"
)

// ToolFlags say what the built-in tools may reach.
type ToolFlags struct {
	Root      string   `placeholder:"DIR" help:"What the file tools see, and what shell commands may write. Default: the current directory."`
	HTTPAllow []string `name:"http-allow" placeholder:"HOST" help:"What the http and search tools may reach beside public addresses: localhost:8080, *.example.com, 10.1.0.0/16."`
	Sandbox   string   `enum:"strict,standard,none," default:"" placeholder:"LEVEL" help:"How shell commands and programs in python are held: strict, standard or none; docs/security.md says what each stops, pawl doctor which can be had here. Default: strict."`
	Hosts     []string `name:"sandbox-host" placeholder:"HOST" help:"What shell commands, and command tools with network: true, may reach from the sandbox over HTTP and HTTPS: api.example.com:443, *.example.org. Takes --sandbox strict. Default: nothing."`
	Skills    []string `sep:"none" placeholder:"DIR" help:"A folder of skills, each in a folder of its own with a SKILL.md. Models read them and cannot change them. May be given again."`
	Zone      string   `placeholder:"ZONE" help:"The zone of schedules that name none, such as Europe/Oslo. Default: this machine's."`
	CodeFlags
	PlanFlags
	StoreFlags
	EmbedFlags
	SharedFlag
}

// CodeFlags say what runs the programs of the code set.
type CodeFlags struct {
	Code string `group:"tools" enum:"python,embedded," default:"" placeholder:"NAME" help:"What runs the programs of the code tool: python (python3 in the sandbox) or embedded, which needs nothing installed. See docs/code.md. Default: python."`
}

// PlanFlags say what the plans of the plan set can do.
type PlanFlags struct {
	DataFlow bool `group:"tools" name:"data-flow" help:"With the plan tool: steps can take values from steps before them. See docs/plans.md."`
}

// Over writes what the flags say over the agent.
func (f *ToolFlags) Over(a *config.Agent) {
	Set(a, "root", &a.Root, f.Root)
	Set(a, "sandbox", &a.Sandbox, f.Sandbox)
	Set(a, "code", &a.Code, f.Code)
	Set(a, "data_flow", &a.DataFlow, f.DataFlow)
	if f.Hosts != nil {
		a.SandboxHosts = f.Hosts
		a.Override("sandbox_hosts")
	}
	if f.HTTPAllow != nil {
		a.HTTPAllow = f.HTTPAllow
		a.Override("http_allow")
	}
	if f.Skills != nil {
		a.Skills = f.Skills
		a.Override("skills")
	}
	Set(a, "zone", &a.Zone, f.Zone)
	Set(a, "store.db", &a.Store.DB, f.DB)
	Set(a, "store.tenant", &a.Store.Tenant, f.Tenant)
	Set(a, "store.user", &a.Store.User, f.User)
	Set(a, "store.shared", &a.Store.Shared, f.Shared)
	Set(a, "embed.model", &a.Embed.Model, f.Embed)
	Set(a, "embed.base_url", &a.Embed.URL, f.EmbedURL)
}
