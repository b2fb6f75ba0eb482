package assemble

import (
	"github.com/pawl-go/pawl/config"
)

// ToolFlags say what the built-in tools may reach.
type ToolFlags struct {
	Root      string   `placeholder:"DIR" help:"@tool_root"`
	HTTPAllow []string `name:"http-allow" placeholder:"HOST" help:"@tool_httpallow"`
	Sandbox   string   `enum:"strict,standard,none," default:"" placeholder:"LEVEL" help:"@tool_sandbox"`
	Hosts     []string `name:"sandbox-host" placeholder:"HOST" help:"@tool_hosts"`
	Skills    []string `sep:"none" placeholder:"DIR" help:"@tool_skills"`
	Zone      string   `placeholder:"ZONE" help:"@tool_zone"`
	CodeFlags
	PlanFlags
	StoreFlags
	EmbedFlags
	SharedFlag
}

// CodeFlags say what runs the programs of the code set.
type CodeFlags struct {
	Code string `group:"tools" enum:"python,embedded," default:"" placeholder:"NAME" help:"@code_code"`
}

// PlanFlags say what the plans of the plan set can do.
type PlanFlags struct {
	DataFlow bool `group:"tools" name:"data-flow" help:"@plan_dataflow"`
}

// Over writes the flags over the agent.
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
