package archtest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The modules below the root. The packages of all other folders belong to the root's module.
const (
	// commandModule is the program. It is installed at one version, with the root of that version.
	commandModule = "cmd/pawl"

	// temporalModule is a library. Programs require it next to the root, and may raise one of the
	// two alone.
	temporalModule = "durable/temporal"
)

// nestedModules has the folders of the modules below the root.
var nestedModules = []string{commandModule, temporalModule}

// moduleOf returns the folder of the module that a folder of the project belongs to: "." for the
// root's.
func moduleOf(dir string) string {
	for _, nested := range nestedModules {
		if matches(nested+"/...", dir) {
			return nested
		}
	}
	return "."
}

// checkModule returns the imports that a module may not have, since it has to build without them.
// from is the folder of the package, and imports are full import paths. inTests reports whether
// only tests of the package have the imports.
func checkModule(from string, imports []string, inTests bool) []string {
	var bad []string
	own := moduleOf(from)
	for _, path := range imports {
		if !matches(module+"/...", path) {
			continue
		}
		to := relative(path)
		other := moduleOf(to)
		hidden := strings.Contains("/"+to+"/", "/internal/")

		switch {
		case own == other:
		case own == ".", other == commandModule:
			bad = append(bad, fmt.Sprintf("%s imports %s of the module %s: other modules build without that one, "+
				"and do not require what it requires", from, to, other))
		case own == temporalModule && hidden && !inTests:
			bad = append(bad, fmt.Sprintf("%s imports %s: a program may raise the root's module alone, and what is "+
				"internal there may change in any version. Use an exported name, or repeat the few lines", from, to))
		}
	}
	return bad
}

var (
	ownRequirement = regexp.MustCompile(`(?m)^(?:require )?\s*(` + regexp.QuoteMeta(module) + `\S*) (v\S+)`)
	ownReplacement = regexp.MustCompile(`(?m)^(?:replace )?\s*(` + regexp.QuoteMeta(module) + `\S*) (v\S+) => (\S+)$`)
	replacement    = regexp.MustCompile(`(?m)^\s*replace\b`)
	goLine         = regexp.MustCompile(`(?m)^go \S+$`)
)

// checkGoMod compares the go.mod file of the module in the folder dir with the go.work file of the
// project.
func checkGoMod(dir, mod, work string) []string {
	var bad []string
	if !slices.Contains(strings.Fields(work), workFolder(dir)) {
		bad = append(bad, fmt.Sprintf("go.work does not use %s", dir))
	}
	if version := goLine.FindString(mod); version != goLine.FindString(work) {
		bad = append(bad, fmt.Sprintf("%s/go.mod says %q, and go.work another version", dir, version))
	}
	if dir != "." && replacement.MatchString(mod) {
		bad = append(bad, fmt.Sprintf("%s/go.mod replaces a module, so that go install refuses this one. "+
			"Replace it in go.work", dir))
	}
	return bad
}

// checkVersions compares the requirements of the modules on each other, from the text of their
// go.mod files. All name one version, since the modules are released together. Until that version
// is published, and while it is developed further, go.work replaces it.
func checkVersions(mods []string, work string) []string {
	replaced := map[string]string{} // the folder, by module and version
	for _, m := range ownReplacement.FindAllStringSubmatch(work, -1) {
		replaced[m[1]+" "+m[2]] = m[3]
	}

	var bad []string
	versions := map[string]bool{}
	for _, mod := range mods {
		for _, m := range ownRequirement.FindAllStringSubmatch(mod, -1) {
			versions[m[2]] = true
			required := m[1] + " " + m[2]
			folder := workFolder(relative(m[1]))
			if strings.TrimSuffix(replaced[required], "/") != folder {
				bad = append(bad, fmt.Sprintf("go.work does not replace %s with %s", required, folder))
			}
		}
	}
	if len(versions) > 1 {
		bad = append(bad, fmt.Sprintf("the modules require %d versions of each other, want one: "+
			"scripts/release writes it", len(versions)))
	}
	return bad
}

// workFolder returns how go.work writes a folder of the project.
func workFolder(dir string) string {
	if dir == "." {
		return "."
	}
	return "./" + dir
}
