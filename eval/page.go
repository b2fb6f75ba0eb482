package eval

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/pawl-go/pawl/internal/text"
)

// page.go: lines of a width, for texts of runs that a terminal shows.

// page is a text of lines that are at most width characters long.
type page struct {
	out   strings.Builder
	width int // less than 40 means 80
}

// mostLines bounds the lines of one text of a run.
const mostLines = 6

// line writes a text behind a label. The text is made visible, and continues below itself.
func (p *page) line(label, format string, args ...any) {
	if p.width < 40 {
		p.width = 80
	}
	room := p.width - utf8.RuneCountInString(label)
	s := text.ClipLine(visible(fmt.Sprintf(format, args...)), room*mostLines*4)
	for i := 0; i == 0 || s != ""; i++ {
		head := []rune(s)
		if len(head) > room {
			head = head[:room]
			if at := strings.LastIndexByte(string(head), ' '); at > room/2 {
				head = []rune(string(head)[:at])
			}
		}
		rest := strings.TrimSpace(s[len(string(head)):])
		if i == mostLines-1 && rest != "" {
			head = append(head[:min(len(head), room-1)], '…')
			rest = ""
		}
		p.out.WriteString(strings.TrimRight(label+string(head), " ") + "\n")
		label = strings.Repeat(" ", p.width-room)
		s = rest
	}
}

// blank writes an empty line.
func (p *page) blank() { p.out.WriteString("\n") }

func (p *page) write(w io.Writer) error {
	_, err := io.WriteString(w, p.out.String())
	return err
}
