package document

import (
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/ledongthuc/pdf"
)

// The library trusts a file in some respects: it allocates the sizes that the file states, descends
// into nested lists until the stack overflows, and loops over stated counts. These failures cannot
// be caught when they happen, so such files are refused beforehand.
const (
	maxObjects = 8_388_607 // objects of a file; PDF 32000-1:2008, annex C
	// depth of nested lists and dictionaries; random bytes reach some hundreds
	maxLists   = 20_000
	maxInflate = 512 << 20 // bytes of all streams
)

var (
	sizes = regexp.MustCompile(`/(?:S|#53)(?:i|#69)(?:z|#7[aA])(?:e|#65)(?:\s|%[^\r\n]*)*(\d+)|/(?:C|` +
		`#43)(?:o|#6[fF])(?:l|#6[cC])(?:u|#75)(?:m|#6[dD])(?:n|#6[eE])(?:s|#73)(?:\s|%[^\r\n]*)*(\d+)`)
	lists   = regexp.MustCompile(`/(?:W|#57|(?:I|#49)(?:n|#6[eE])(?:d|#64)(?:e|#65)(?:x|#78))(?:\s|%[^\r\n]*)*\[([^\]]*)\]`)
	numbers = regexp.MustCompile(`\d+`)
	section = regexp.MustCompile(`[\r\n]\s*(\d{7,})\s+\d+\s*[\r\n]`)
	digits  = regexp.MustCompile(`\d{6,}`)
	hexText = regexp.MustCompile(`<[0-9A-Fa-f\s]*>`)
)

// guardPDF returns an error if the library must not read the file. Its streams may unpack to
// inflate bytes.
func guardPDF(ctx context.Context, data []byte, inflate int64) error {
	implausible := errors.New("the PDF is broken: it states impossible sizes")
	// The library allocates what these numbers state before it reads anything.
	for _, m := range sizes.FindAllSubmatch(data, -1) {
		if tooMany(m[1]) || tooMany(m[2]) {
			return implausible
		}
	}

	for _, m := range lists.FindAllSubmatch(data, -1) {
		for _, n := range numbers.FindAll(m[1], -1) {
			if tooMany(n) {
				return implausible
			}
		}
	}

	for rest := data; ; {
		i := bytes.Index(rest, []byte("xref"))
		if i < 0 {
			break
		}
		table, _, _ := bytes.Cut(rest[i+4:], []byte("trailer"))
		if m := section.FindSubmatch(append([]byte("\n"), table[:min(len(table), 64<<10)]...)); m != nil && tooMany(m[1]) {
			return implausible
		}
		rest = rest[i+4+len(table):]
	}

	if deep := new(nesting); !deep.ok(data) {
		return errTooDeep
	}
	return guardStreams(ctx, data, inflate)
}

var errTooDeep = fmt.Errorf("the PDF is broken: it has more than %d nested lists", maxLists)

// guardStreams checks all compressed streams.
func guardStreams(ctx context.Context, data []byte, inflate int64) error {
	left := inflate
	for rest := data; ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		i := bytes.Index(rest, []byte("stream"))
		if i < 0 {
			return nil
		}
		body := bytes.TrimLeft(rest[i+len("stream"):], "\r\n")
		rest = rest[i+len("stream"):]
		if len(body) < 2 || body[0]&0x0f != 8 || (uint(body[0])<<8|uint(body[1]))%31 != 0 {
			continue // not compressed by zlib
		}
		z, err := zlib.NewReader(bytes.NewReader(body))
		if err != nil {
			continue
		}
		// The library descends into nested objects by recursion, which a stack overflow ends
		// without a panic that could be recovered.
		deep := new(nesting)
		n, err := io.Copy(deep, io.LimitReader(z, left+1))
		if errors.Is(err, errTooDeep) {
			return err
		}
		left -= n
		if left < 0 {
			return fmt.Errorf("the PDF unpacks to more than %d MiB", inflate>>20)
		}
	}
}

func tooMany(n []byte) bool {
	if len(n) == 0 {
		return false
	}
	v, err := strconv.Atoi(string(n))
	return err != nil || v > maxObjects
}

// nesting measures the depth of nested lists.
type nesting struct {
	depth int
	last  byte
}

func (n *nesting) ok(b []byte) bool {
	for _, c := range b {
		switch {
		case c == '[', c == '<' && n.last == '<':
			n.depth++
		case c == ']', c == '>' && n.last == '>':
			n.depth = max(0, n.depth-1)
		}
		if n.depth > maxLists {
			return false
		}
		n.last = c
	}
	return true
}

// Write processes the next bytes.
func (n *nesting) Write(b []byte) (int, error) {
	if !n.ok(b) {
		return 0, errTooDeep
	}
	return len(b), nil
}

// plainMap reports whether the counts in a font's map to Unicode match its content.
func plainMap(v pdf.Value) bool {
	if v.Kind() != pdf.Stream {
		return true
	}
	b, _ := io.ReadAll(io.LimitReader(v.Reader(), 4<<20))
	return len(b) < 4<<20 && !digits.Match(hexText.ReplaceAll(b, nil))
}
