// Package diff computes the lines in which two texts differ.
package diff

// Op is the kind of a line.
type Op byte

// The ops.
const (
	Same Op = ' ' // in both texts
	Gone Op = '-' // in the first text only
	Come Op = '+' // in the second text only
	Gap  Op = '@' // no line: equal lines are left out here
)

// Line is a line of a diff.
type Line struct {
	Op   Op
	Text string
	// Old and New are the line numbers in the first and in the second text, from 1. 0 means that
	// the line is not in that text. For a Gap, Old is the number of lines left out.
	Old, New int
}

// most is the maximum size of the table of common lines. Larger differences are returned as one
// block.
const most = 1 << 22

// Lines returns how b differs from a, with at most around equal lines before and after each
// difference. Nil means that they are equal.
func Lines(a, b []string, around int) []Line {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	if head == len(a) && head == len(b) {
		return nil
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}

	d := differ{old: a, new: b}
	d.add(Same, head)
	d.between(len(a)-tail, len(b)-tail)
	d.add(Same, tail)
	return hunks(d.out, around)
}

type differ struct {
	old    []string
	new    []string
	oldPos int // lines of old in out
	newPos int // lines of new in out
	out    []Line
}

// add adds the next n lines of the texts that have them.
func (d *differ) add(op Op, n int) {
	for range n {
		l := Line{Op: op}
		if op != Gone {
			l.Text = d.new[d.newPos]
			d.newPos++
			l.New = d.newPos
		}
		if op != Come {
			l.Text = d.old[d.oldPos]
			d.oldPos++
			l.Old = d.oldPos
		}
		d.out = append(d.out, l)
	}
}

// between adds the shortest difference up to the given ends.
func (d *differ) between(endA, endB int) {
	x := d.old[d.oldPos:endA]
	y := d.new[d.newPos:endB]
	if len(x)*len(y) <= most { // otherwise the search for common lines is too expensive
		common := longestCommon(x, y)
		for i, j := 0, 0; i < len(x) && j < len(y); {
			switch {
			case x[i] == y[j]:
				d.add(Same, 1)
				i++
				j++
			case common[i+1][j] >= common[i][j+1]:
				d.add(Gone, 1)
				i++
			default:
				d.add(Come, 1)
				j++
			}
		}
	}
	d.add(Gone, endA-d.oldPos)
	d.add(Come, endB-d.newPos)
}

// longestCommon returns, for each pair of positions, the length of the longest common subsequence
// of the rests.
func longestCommon(x, y []string) [][]int32 {
	common := make([][]int32, len(x)+1)
	cells := make([]int32, (len(x)+1)*(len(y)+1))
	for i := range common {
		common[i], cells = cells[:len(y)+1], cells[len(y)+1:]
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// hunks replaces equal lines that are far from differences by gaps.
func hunks(all []Line, around int) []Line {
	near := make([]bool, len(all))
	last := -around - 1
	for i, l := range all {
		if l.Op != Same {
			last = i
		}
		near[i] = i-last <= around
	}

	next := len(all) + around + 1
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Op != Same {
			next = i
		}
		near[i] = near[i] || next-i <= around
	}

	var out []Line
	for i := 0; i < len(all); i++ {
		if near[i] {
			out = append(out, all[i])
			continue
		}
		from := i
		for i+1 < len(all) && !near[i+1] {
			i++
		}
		out = append(out, Line{Op: Gap, Old: i + 1 - from})
	}
	return out
}
