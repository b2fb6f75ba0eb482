// Package docgen keeps the parts of the documents that are made from code equal to the code. Its
// tests compare, and with
//
//	go test ./internal/test/docgen -run Test -update
//
// they write. There are two such parts: docs/events.md, the closed list of events, which is made
// from event.go; and the Go blocks of README.md and docs/*.md that stand below a line
//
//	<!-- code: examples/quickstart/main.go -->
//	<!-- code: examples/quickstart/main.go#agent -->
//
// which are copies of that file, or of the lines in it between "// begin agent" and "// end agent".
// So what a reader copies from a page compiles. A file with one example is a whole program below
//
//	<!-- program: examples/guide/tools_test.go -->
//
// which shows the file with a main function in place of the example. What an example prints stands
// below
//
//	<!-- output: examples/calls_test.go#Example_repaired -->
//
// and is a copy of the example's own "// Output:", which go test compares. Blocks, Links and Prose
// read pages for other tests.
package docgen

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

var (
	markerLine = regexp.MustCompile(`^<!-- (?:code|program): ([^ #]+)(?:#([\w-]+))? -->\s*$`)
	outputLine = regexp.MustCompile(`^<!-- output: ([^ #]+)#(Example\w*) -->\s*$`)
	goFence    = "```go"
	textFence  = "```text"
	fence      = "```"
)

// Fill returns page with new content for the blocks below a marker: Go blocks get the code that the
// marker names, and text blocks the output of an example. read returns the content of a file by its
// path within the module. A Go block without a marker, and a marker without a block, are errors
// that name the line.
func Fill(page string, read func(path string) (string, error)) (string, error) {
	var out strings.Builder
	lines := strings.SplitAfter(page, "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimRight(lines[i], "\n")
		out.WriteString(lines[i])
		marker, first, cut := markerLine.FindStringSubmatch(line), goFence, region
		if marker == nil {
			marker, first, cut = outputLine.FindStringSubmatch(line), textFence, output
		}
		if marker == nil {
			if line == goFence {
				return "", fmt.Errorf("line %d: Go code without a line <!-- code: FILE --> above it: nothing checks that it compiles", i+1)
			}
			continue
		}
		if i++; i >= len(lines) || strings.TrimRight(lines[i], "\n") != first {
			return "", fmt.Errorf("line %d: no %s on the next line, so there is nothing to fill", i, first)
		}
		out.WriteString(lines[i])
		src, err := read(marker[1])
		if err == nil && strings.HasPrefix(line, "<!-- program: ") {
			src, err = program(src)
		} else if err == nil && marker[2] != "" {
			if src, err = cut(src, marker[2]); err != nil {
				err = fmt.Errorf("%s: %w", path.Clean(marker[1]), err)
			}
		}
		if err != nil {
			return "", fmt.Errorf("line %d: %w", i, err)
		}
		out.WriteString(strings.TrimRight(src, "\n") + "\n")
		for i++; i < len(lines) && strings.TrimRight(lines[i], "\n") != fence; i++ {
		}
		if i == len(lines) {
			return "", fmt.Errorf("a block of code is not closed")
		}
		out.WriteString(lines[i])
	}
	return out.String(), nil
}

var (
	exampleFunc = regexp.MustCompile(`(?m)^func Example\w*\(\) \{$`)
	packageLine = regexp.MustCompile(`(?s)^.*?(?m:^package \w+$)`)
	outputOf    = regexp.MustCompile(`(?s)\n*\t// (?:Unordered output|Output):\n.*?\n}\n`)
)

// program returns a file with one example as a command: package main, main in place of the example,
// and no expected output.
func program(src string) (string, error) {
	if n := len(exampleFunc.FindAllString(src, -1)); n != 1 {
		return "", fmt.Errorf("a program has one example, and the file has %d", n)
	}
	src = packageLine.ReplaceAllString(src, "package main")
	return outputOf.ReplaceAllString(exampleFunc.ReplaceAllString(src, "func main() {"), "\n}\n"), nil
}

// output returns what the example called name says that it prints.
func output(src, name string) (string, error) {
	_, body, found := strings.Cut(src, "\nfunc "+name+"() {\n")
	if !found {
		return "", fmt.Errorf("no func %s", name)
	}
	body, _, _ = strings.Cut(body, "\n}\n")
	_, said, found := strings.Cut(body, "\t// Output:\n")
	if !found {
		return "", fmt.Errorf("%s has no line \"// Output:\"", name)
	}
	var b strings.Builder
	for l := range strings.Lines(said + "\n") {
		b.WriteString(strings.TrimPrefix(strings.TrimPrefix(strings.TrimLeft(l, "\t"), "//"), " "))
	}
	return b.String(), nil
}

// region returns the lines between "// begin NAME" and "// end NAME", moved to the left margin.
func region(src, name string) (string, error) {
	var lines []string
	inside, found := false, false
	for line := range strings.Lines(src) {
		switch strings.TrimSpace(line) {
		case "// begin " + name:
			inside, found = true, true
			continue
		case "// end " + name:
			inside = false
		}
		if inside {
			lines = append(lines, line)
		}
	}
	switch {
	case !found:
		return "", fmt.Errorf("no line \"// begin %s\"", name)
	case inside:
		return "", fmt.Errorf("no line \"// end %s\"", name)
	}
	margin := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, "\t")); strings.TrimSpace(l) != "" && (margin < 0 || n < margin) {
			margin = n
		}
	}
	for i, l := range lines {
		lines[i] = l[min(max(margin, 0), len(l)-len(strings.TrimLeft(l, "\t"))):]
	}
	return strings.Join(lines, ""), nil
}
