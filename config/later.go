package config

// unbuilt refuses what is not built yet. Whoever builds it takes its line out here.
func (a *Agent) unbuilt() error {
	hint := "leave it out until it is"
	var all Findings
	for _, k := range []struct {
		path  string
		there bool
	}{{"team", a.Team != nil}, {"schedules", a.Schedules != nil}, {"spec.planner.type", a.manager != nil}} {
		if k.there {
			what := k.path
			if a.manager != nil && what == "spec.planner.type" {
				what = a.manager.Planner
			}
			all = append(all, finding(CodeNotBuilt, k.path, hint, "%s: not built yet", what))
		}
	}
	return all.err()
}
