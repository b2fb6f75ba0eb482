package main

import (
	"bytes"
	"fmt"
	"html"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// recordingFile is the animated recording of pawl demo that README.md shows.
const recordingFile = "../../docs/demo.svg"

// TestDemoRecording compares the recording with the present output of pawl demo. To write it again:
// go test ./cmd/pawl -run DemoRecording -update
func TestDemoRecording(t *testing.T) {
	got := recording(demoScreen(t))
	have, err := os.ReadFile(recordingFile)
	if *update && unchanging(string(have)) != unchanging(got) {
		if err := os.WriteFile(recordingFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unchanging(string(have)), unchanging(got)); diff != "" {
		t.Errorf("docs/demo.svg differs from the output of pawl demo; -run DemoRecording -update writes it again; have -, want +\n%s", diff)
	}
	if len(have) > 100<<10 {
		t.Errorf("docs/demo.svg has %d bytes, at most 100 KB are wanted", len(have))
	}
}

// The negative control: the comparison detects another word, another figure, another colour and a
// missing line, and accepts other times.
func TestDemoRecordingComparison(t *testing.T) {
	screen := "\x1b[1mpawl demo\x1b[0m\n\x1b[32m✓\x1b[0m file_list  \x1b[2m0.4 ms\x1b[0m  #1\n  └ file orders.csv (+2 lines)\nThe end.\n"
	have := unchanging(recording(screen))
	for _, tt := range []struct {
		from, to string
		same     bool
	}{
		{"0.4 ms", "12 ms", true},
		{"file_list", "file_read", false},
		{"+2 lines", "+3 lines", false},
		{"[32m", "[31m", false},
		{"The end.\n", "", false},
	} {
		if got := unchanging(recording(strings.Replace(screen, tt.from, tt.to, 1))); (got == have) != tt.same {
			t.Errorf("%q in place of %q: seen as equal %v, want %v", tt.to, tt.from, got == have, tt.same)
		}
	}
	if s := recording(screen); !strings.Contains(s, "✓") || strings.Contains(s, "\x1b") {
		t.Errorf("got %s", s)
	}
}

// demoScreen returns what pawl demo writes to a terminal of 80 columns.
func demoScreen(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "pawl-demo-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	var stdout, stderr bytes.Buffer
	sys := &cli.System{In: strings.NewReader(""), Out: &stdout, Err: &stderr, OutTerm: true, Width: 80,
		Env: func(string) string { return "" }}
	if status := execute([]string{"demo", "--out", dir}, sys); status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr.String())
	}
	return strings.ReplaceAll(stdout.String(), dir, "/tmp/pawl-demo-1")
}

var (
	port     = regexp.MustCompile(`127\.0\.0\.1:\d+`)
	duration = regexp.MustCompile(`\b(\d+m\d+s|\d+(\.\d+)? m?s)\b`)
)

// unchanging returns a recording without the parts that differ from run to run.
func unchanging(svg string) string {
	return duration.ReplaceAllString(port.ReplaceAllString(svg, "127.0.0.1:PORT"), "T ms")
}

// The measures of a recording, in pixels and milliseconds.
const (
	recordedRows = 26
	lineHeight   = 17
	firstLine    = 50 // below the bar of the window
	lastPause    = 8000
)

var sgr = regexp.MustCompile("\x1b\\[(\\d+)m")

// recording returns the animation of a terminal that writes the text of screen line by line.
func recording(screen string) string {
	lines := append([]string{"$ pawl demo"}, strings.Split(strings.TrimRight(screen, "\n"), "\n")...)
	var text strings.Builder
	at := make([]int, len(lines)) // when each line appears
	now := 0
	for i, l := range lines {
		at[i] = now
		switch plain := strings.TrimSpace(sgr.ReplaceAllString(l, "")); {
		case i == 0:
			now += 900
		case plain == "":
			now += 50
		case strings.HasPrefix(plain, "step "):
			now += 500
		default:
			now += 150
		}
		if l == "" {
			continue
		}
		fmt.Fprintf(&text, "<text y=\"%d\">%s</text>\n", firstLine+i*lineHeight, spans(l))
	}
	total := now + lastPause
	var scroll, cover strings.Builder
	for i := range lines {
		percent := 100 * float64(at[i]) / float64(total)
		if i+1 > recordedRows {
			fmt.Fprintf(&scroll, "%.2f%%{transform:translateY(%dpx)}", percent, -(i+1-recordedRows)*lineHeight)
		} else {
			fmt.Fprintf(&cover, "%.2f%%{transform:translateY(%dpx)}", percent, (i+1)*lineHeight)
		}
	}
	above := max(0, len(lines)-recordedRows) * lineHeight
	height := firstLine + recordedRows*lineHeight
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 %[1]d" width="680" height="%[1]d">
<title>pawl demo in a terminal</title>
<!-- Made from the output of pawl demo. To write it again: go test ./cmd/pawl -run DemoRecording -update -->
<style>
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;fill:#d7dae0;white-space:pre}
.b{font-weight:bold;fill:#fff}.d{fill:#8b919d}.r{fill:#ff7b72}.g{fill:#56d364}.y{fill:#e3b341}
#lines{transform:translateY(-%[2]dpx);animation:scroll %[3]dms step-end infinite}
#cover{transform:translateY(%[4]dpx);animation:cover %[3]dms step-end infinite}
@keyframes scroll{0%%{transform:none}%[5]s}
@keyframes cover{%[6]s}
@media (prefers-reduced-motion:reduce){#lines,#cover{animation:none}}
</style>
<clipPath id="window"><rect y="38" width="680" height="%[7]d"/></clipPath>
<rect width="680" height="%[1]d" rx="8" fill="#161b22"/>
<circle cx="20" cy="18" r="6" fill="#ff5f57"/><circle cx="40" cy="18" r="6" fill="#febc2e"/><circle cx="60" cy="18" r="6" fill="#28c840"/>
<g clip-path="url(#window)"><g id="lines"><g transform="translate(20)">
%[8]s</g></g><rect id="cover" y="36" width="680" height="%[1]d" fill="#161b22"/></g>
</svg>
`, height, above, total, recordedRows*lineHeight, scroll.String(), cover.String(), height-46, text.String())
}

// spans returns a line of a terminal as the content of an SVG text.
func spans(line string) string {
	classes := map[string]string{"1": "b", "2": "d", "31": "r", "32": "g", "33": "y"}
	var b strings.Builder
	open := false
	for line != "" {
		m := sgr.FindStringSubmatchIndex(line)
		if m == nil {
			b.WriteString(html.EscapeString(line))
			break
		}
		b.WriteString(html.EscapeString(line[:m[0]]))
		if open {
			b.WriteString("</tspan>")
		}
		class := classes[line[m[2]:m[3]]]
		if open = class != ""; open {
			fmt.Fprintf(&b, `<tspan class="%s">`, class)
		}
		line = line[m[1]:]
	}
	if open {
		b.WriteString("</tspan>")
	}
	return b.String()
}
