package archtest

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// machinePlaces are the names that a file must not contain, because they belong to the machine it
// was written on and are wrong on every other. They are joined from halves, so that this file
// follows its own rule.
var machinePlaces = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`(^|[^\w.\-/])/(wor` + `k|roo` + `t|far` + `m)/`),
		"a path of one machine; make it relative to the module, or take it from the environment"},
	{regexp.MustCompile(`(^|[^\w.\-/])/tm` + `p/[a-z]+[0-9]`),
		"a scratch folder of one machine; tests use t.TempDir"},
	{regexp.MustCompile(`\b(proxy\.gol` + `ang\.org|sum\.gol` + `ang\.org|registry\.np` + `mjs\.org|` +
		`deb\.deb` + `ian\.org|pypi\.o` + `rg|files\.pythonh` + `osted\.org)\b`),
		"the host of a registry; each machine has its own, and the project depends on none"},
}

// checkText returns the lines of a file that name a place. A file with a zero byte is not text.
func checkText(path string, content []byte) []string {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	var bad []string
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		for _, p := range machinePlaces {
			if m := p.pattern.FindString(line); m != "" {
				bad = append(bad, fmt.Sprintf("%s:%d: %q: %s", path, n, strings.TrimSpace(m), p.why))
			}
		}
	}
	return bad
}
