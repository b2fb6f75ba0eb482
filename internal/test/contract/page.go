package contract

// page.go: the page of the table.

import (
	"fmt"
	"strings"
)

// Cell is a cell of the page.
type Cell struct {
	// Mark is ok, differs or absent.
	Mark string
	// Why is the sentence or the reason of a cell that is not ok.
	Why string
	// Page has the sentence. "" means that Why is a reason of the table.
	Page string
	// Test shows the cell. "" means that Play does.
	Test string
}

// The marks of cells.
const (
	MarkOK      = "ok"
	MarkDiffers = "differs"
	MarkAbsent  = "absent"
)

// Row is a row of the page.
type Row struct {
	// Group and Name are as in Behaviour.
	Group, Name string
	// Cells are in the order of Doors.
	Cells []Cell
}

// Rows returns the rows of the page.
func Rows() (rows []Row) {
	for i := range Table {
		b := &Table[i]
		row := Row{Group: b.Group, Name: b.Name}
		for j := range Doors {
			row.Cells = append(row.Cells, b.cell(&Doors[j]))
		}
		rows = append(rows, row)
	}
	for i := range KnownRows {
		k := &KnownRows[i]
		row := Row{Group: k.Group, Name: k.Name}
		for j := range Doors {
			row.Cells = append(row.Cells, k.cell(&Doors[j]))
		}
		rows = append(rows, row)
	}
	return rows
}

// cell returns the cell of a behaviour at a door.
func (b *Behaviour) cell(door *Door) Cell {
	want, absent, differs := b.Cell(door)
	switch {
	case want == nil:
		return Cell{Mark: MarkAbsent, Why: absent}
	case differs == "":
		return Cell{Mark: MarkOK}
	}
	page := b.Except[door.Name].Page
	if page == "" {
		page = door.Ends[b.Want.End].Page
	}
	return Cell{Mark: MarkDiffers, Why: differs, Page: page}
}

// cell returns the cell of a row with tests of its own.
func (k *Known) cell(door *Door) Cell {
	if test := k.Tests[door.Name]; test != "" {
		return Cell{Mark: MarkOK, Test: test}
	}
	return Cell{Mark: MarkAbsent, Why: k.Absent[door.Name]}
}

// Page returns the page of the table.
func Page() string {
	var b strings.Builder
	rows := Rows()
	count := map[string]int{}
	for _, row := range rows {
		for _, cell := range row.Cells {
			count[cell.Mark]++
		}
	}
	fmt.Fprintf(&b, "<!-- Made by go test ./internal/test/docgen -run Contract -update. -->\n\n# The same at every door\n\n"+
		"%d behaviours of an agent at %d doors: %d cells are as the row says and are tested, %d differ as a page says, "+
		"and %d are absent for a reason. What a tool executes, and what the model is sent, is counted outside of the door.\n",
		len(rows), len(Doors), count[MarkOK], count[MarkDiffers], count[MarkAbsent])
	var notes []string
	group := ""
	for _, row := range rows {
		if row.Group != group {
			group = row.Group
			fmt.Fprintf(&b, "\n## %s\n\n|%s\n|%s\n", group, heads(), strings.Repeat("---|", len(Doors)+1))
		}
		fmt.Fprintf(&b, "| %s |", row.Name)
		for _, cell := range row.Cells {
			b.WriteString(" " + cell.mark(&notes) + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## Notes\n\n")
	for i, note := range notes {
		fmt.Fprintf(&b, "%d. %s\n", i+1, note)
	}
	return b.String()
}

// heads returns the heads of the columns.
func heads() string {
	var b strings.Builder
	b.WriteString(" behaviour |")
	for i := range Doors {
		b.WriteString(" " + Doors[i].Name + " |")
	}
	return b.String()
}

// mark returns the text of a cell, and adds its note.
func (c *Cell) mark(notes *[]string) string {
	if c.Mark == MarkOK {
		return "ok"
	}
	note := c.Why + "."
	if c.Page != "" {
		name := strings.TrimPrefix(c.Page, "docs/")
		note = fmt.Sprintf("[%s](%s): “%s”.", strings.TrimSuffix(name, ".md"), name, c.Why)
	}
	for i, old := range *notes {
		if old == note {
			return fmt.Sprintf("%s (%d)", c.short(), i+1)
		}
	}
	*notes = append(*notes, note)
	return fmt.Sprintf("%s (%d)", c.short(), len(*notes))
}

// short returns the mark of a cell that is not ok.
func (c *Cell) short() string {
	if c.Mark == MarkAbsent {
		return "–"
	}
	return "differs"
}
