package config

// unbuilt refuses what is not built yet. Whoever builds it takes its line out here.
func (a *Agent) unbuilt() error {
	hint := "leave it out until it is"
	var all Findings
	for _, k := range []struct {
		path  string
		there bool
	}{{"mcp", a.MCP != nil}, {"schedules", a.Schedules != nil}} {
		if k.there {
			all = append(all, finding(CodeNotBuilt, k.path, hint, "%s: not built yet", k.path))
		}
	}
	for i, t := range a.Tools {
		if t.MCP != "" {
			all = append(all, finding(CodeNotBuilt, index("tools", i)+".mcp", hint, "mcp: not built yet"))
		}
	}
	return all.err()
}
