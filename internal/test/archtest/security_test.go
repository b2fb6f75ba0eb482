package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	shownBy = regexp.MustCompile("`((?:Test|Fuzz)\\w+)` in `([^`]+)`")
	tried   = regexp.MustCompile("`go test ([^`]*?) -(?:run|fuzz) '?([\\w|]+)'?[^`]*`")
)

// missingTests returns the tests that page names and that do not exist, and the number of names.
func missingTests(root, page string) (bad []string, named int) {
	exists := func(dir, pattern string) bool {
		files, _ := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err == nil && regexp.MustCompile(`(?m)^func `+pattern+`\(`).Match(b) {
				return true
			}
		}
		return false
	}
	page = strings.Join(strings.Fields(page), " ")
	for _, m := range shownBy.FindAllStringSubmatch(page, -1) {
		if named++; !exists(m[2], m[1]) {
			bad = append(bad, fmt.Sprintf("docs/security.md names the test %s, which package %s does not have", m[1], m[2]))
		}
	}
	for _, m := range tried.FindAllStringSubmatch(page, -1) {
		for _, part := range strings.Split(m[2], "|") {
			found := false
			for _, dir := range strings.Fields(m[1]) {
				found = found || exists(dir, `(?:Test|Fuzz)\w*`+strings.TrimPrefix(part, "Fuzz")+`\w*`)
			}
			if named++; !found {
				bad = append(bad, fmt.Sprintf("docs/security.md says go test %s -run %s, which finds no test", m[1], part))
			}
		}
	}
	return bad, named
}

// Each promise of the page on security has a test.
func TestSecurityPage(t *testing.T) {
	const root = "../../.."
	page, err := os.ReadFile(filepath.Join(root, "docs/security.md"))
	if err != nil {
		t.Fatal(err)
	}
	bad, named := missingTests(root, string(page))
	for _, b := range bad {
		t.Error(b)
	}
	if named < 30 {
		t.Errorf("the page names %d tests; at least 30 were found before", named)
	}
	_, table, _ := strings.Cut(string(page), "## Promises")
	table, _, _ = strings.Cut(table, "\n\nA test")
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| promise") && !shownBy.MatchString(line) {
			t.Errorf("a promise without a test: %s", line)
		}
	}
	if bad, _ := missingTests(root, "`TestNothing` in `policy` and `go test ./policy -run 'Rules|Nonsense'`"); len(bad) != 2 {
		t.Errorf("the control found %q, want two missing tests", bad)
	}
}
