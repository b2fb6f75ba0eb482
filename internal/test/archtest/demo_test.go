package archtest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// maxDemoPackages limits what cmd/pawl/demo links of other modules, the standard library included.
// The demo is the first command of README.md, and its build from empty caches is what a visitor
// waits for. Packages of this module do not count: a package that is split is the same code.
const maxDemoPackages = 250

// TestDemoPackages keeps databases, clusters and exporters out of the demo.
func TestDemoPackages(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "./cmd/pawl/demo")
	cmd.Dir = "../../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Fields(string(out))
	foreign := 0
	for _, p := range all {
		if p != module && !strings.HasPrefix(p, module+"/") {
			foreign++
		}
	}
	t.Logf("%d packages, %d of other modules", len(all), foreign)
	if foreign > maxDemoPackages {
		t.Errorf("cmd/pawl/demo links %d packages of other modules, at most %d: go list -deps ./cmd/pawl/demo lists them",
			foreign, maxDemoPackages)
	}

	// The control: the list has the packages of the demo, and lacks large parts of the project.
	if !slices.Contains(all, module+"/cmd/pawl/internal/show") {
		t.Error("the list lacks the package show")
	}
	for _, part := range []string{"config", "durable", "store/sqlite", "server", "cmd/pawl/internal/tui"} {
		if slices.Contains(all, module+"/"+part) {
			t.Errorf("cmd/pawl/demo links %s", part)
		}
	}
}
