package config

// unbuilt refuses what is not built yet. Whoever builds it takes its line out here.
func (a *Agent) unbuilt() error {
	hint := "leave it out until it is"
	var all Findings
	for _, k := range []struct {
		path  string
		there bool
	}{{"schedules", a.Schedules != nil}} {
		if k.there {
			all = append(all, finding(CodeNotBuilt, k.path, hint, "%s: not built yet", k.path))
		}
	}
	return all.err()
}
