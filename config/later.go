package config

// unbuilt refuses what is not built yet. Whoever builds it takes its line out here.
func (a *Agent) unbuilt() error {
	hint := "leave it out until it is"
	var all Findings
	for _, k := range []struct {
		path  string
		there bool
	}{{"mcp", a.MCP != nil}, {"team", a.Team != nil}, {"schedules", a.Schedules != nil}, {"", a.manager != nil}} {
		if k.there {
			what := k.path
			if what == "" {
				what = a.manager.Planner
			}
			all = append(all, finding(CodeNotBuilt, k.path, hint, "%s: not built yet", what))
		}
	}
	for i, t := range a.Tools {
		if t.MCP != "" {
			all = append(all, finding(CodeNotBuilt, index("tools", i)+".mcp", hint, "mcp: not built yet"))
		}
	}
	return all.err()
}

// Manager is what is written of an agent that leads others, of kind ManagerAgent, or whose planner is not that of one agent alone.
type Manager struct {
	Planner string // the type of the planner
}
