package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pawl-go/pawl/cmd/pawl/internal/cli"
)

// sums are the figures of one file: group, then column, then the sum. The group "" is all records,
// the column "" their number.
type sums map[string]map[string]*big.Rat

func (s sums) add(group, column, value string) {
	for _, g := range []string{group, ""} {
		if s[g] == nil {
			s[g] = map[string]*big.Rat{}
		}
		if s[g][column] == nil {
			s[g][column] = new(big.Rat)
		}
		if v, ok := new(big.Rat).SetString(value); ok {
			s[g][column].Add(s[g][column], v)
		}
	}
}

// strings formats figures for comparison. The text is exact and does not depend on trailing zeros
// after the point.
func (s sums) strings() map[string]string {
	out := map[string]string{}
	for g, columns := range s {
		for c, v := range columns {
			out[g+" / "+c] = v.RatString()
		}
	}
	return out
}

// sumCSV computes the sums of text on its own, with the standard library and exact numbers.
func sumCSV(t *testing.T, text, group string, columns ...string) sums {
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	s := sums{}
	for _, row := range rows[1:] {
		g := row[at[group]]
		s.add(g, "", "1")
		for _, c := range columns {
			s.add(g, c, row[at[c]])
		}
	}
	return s
}

// sumJSON does the same for JSON, with an object on each line or in an array.
func sumJSON(t *testing.T, text, group string, columns ...string) sums {
	s := sums{}
	for text = strings.Trim(strings.TrimSpace(text), "[]"); ; {
		var record map[string]any
		text = strings.TrimLeft(text, ", \n\t")
		if text == "" {
			return s
		}
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&record); err != nil {
			t.Fatal(err)
		}
		text = text[d.InputOffset():]
		g := fmt.Sprint(record[group])
		s.add(g, "", "1")
		for _, c := range columns {
			n, _ := record[c].(json.Number)
			s.add(g, c, n.String())
		}
	}
}

// readReport reads the tables of a report: file, then figures.
func readReport(t *testing.T, report string) map[string]sums {
	t.Helper()
	out := map[string]sums{}
	for _, section := range strings.Split(report, "\n## ")[1:] {
		name, rest, _ := strings.Cut(section, "\n")
		s := sums{}
		var heads []string
		for l := range strings.Lines(rest) {
			l = strings.TrimSpace(l)
			if !strings.HasPrefix(l, "|") || strings.HasPrefix(l, "|---") {
				continue
			}
			cells := strings.Split(strings.ReplaceAll(strings.Trim(l, "| "), `\|`, "\x00"), " | ")
			for i := range cells {
				cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
			}
			if heads == nil {
				heads = cells
				continue
			}
			group := cells[0]
			if group == "**all**" {
				group = ""
			}
			if s[group] == nil {
				s[group] = map[string]*big.Rat{}
			}
			for i := 1; i < len(cells); i++ {
				v, ok := new(big.Rat).SetString(cells[i])
				if !ok {
					t.Fatalf("%s: %q is no figure, in the row %s", name, cells[i], l)
				}
				column, _ := strings.CutPrefix(heads[i], "sum of ")
				if heads[i] == "count" {
					column = ""
				}
				s[group][column] = v
			}
		}
		out[name] = s
	}
	return out
}

// runDemo runs the demo as the command does, and returns the report and the output.
func runDemo(t *testing.T, args ...string) (report, shown string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	var stdout, stderr bytes.Buffer
	sys := &cli.System{In: strings.NewReader(""), Out: &stdout, Err: &stderr, Env: func(string) string { return "" },
		Width: 80}
	if status := execute(append([]string{"demo", "--out", out}, args...), sys); status != 0 {
		t.Fatalf("pawl demo %v: exit status %d\n%s\n%s", args, status, stdout.String(), stderr.String())
	}
	b, err := os.ReadFile(filepath.Join(out, "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(b), stdout.String()
}

func sample(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("internal", "demo", "samples", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The demo's figures equal the figures of the files: for the samples, for a set of another shape,
// and for a random set.
func TestDemo(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("PAWL_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the random set is made from PAWL_SEED=%d", seed)
	random, randomWant := randomSet(t, seed)
	other := map[string]string{
		"staff.json":  `[{"team":"blue","hours":7.5,"who":{"name":"a"}},{"team":"red","hours":8},{"team":"blue","hours":null},{"team":"red","hours":0.1}]`,
		"cities.csv":  "city,country,people\nOslo,NO,709037\nBergen,NO,289330\nMalmö,SE,351749\n\"Århus, midt\",DK,\n",
		"notes.txt":   "no data",
		"empty.csv":   "",
		"broken.json": `[{"a":1},`,
	}
	for _, test := range []struct {
		name  string
		files map[string]string // nil means the samples
		want  map[string]sums
	}{
		{"samples", nil, map[string]sums{
			"orders.csv":     sumCSV(t, sample(t, "orders.csv"), "region", "quantity", "amount"),
			"returns.jsonl":  sumJSON(t, sample(t, "returns.jsonl"), "reason", "refund"),
			"shipments.json": sumJSON(t, sample(t, "shipments.json"), "carrier", "cost", "weight_kg"),
		}},
		{"another shape", other, map[string]sums{
			"staff.json":  sumJSON(t, other["staff.json"], "team", "hours"),
			"cities.csv":  sumCSV(t, other["cities.csv"], "country", "people"),
			"empty.csv":   {},
			"broken.json": {},
		}},
		{"random", random, randomWant},
	} {
		for _, api := range []string{"openai", "openai-chat"} {
			t.Run(test.name+"/"+api, func(t *testing.T) {
				args := []string{"--api", api}
				if test.files != nil {
					dir := t.TempDir()
					for name, content := range test.files {
						if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
							t.Fatal(err)
						}
					}
					args = append(args, "--data", dir)
				}
				report, shown := runDemo(t, args...)
				got := readReport(t, report)
				if len(got) != len(test.want) {
					t.Errorf("got %d files in the report, want %d\n%s", len(got), len(test.want), report)
				}
				for file, want := range test.want {
					if diff := cmp.Diff(got[file].strings(), want.strings()); diff != "" {
						t.Errorf("%s: got -, want +\n%s", file, diff)
					}
				}
				for _, want := range []string{"The model is a script", "invalid", "report.md", " requests, ", "✓"} {
					if !strings.Contains(shown, want) {
						t.Errorf("nothing says %q in\n%s", want, shown)
					}
				}
				for l := range strings.Lines(shown) {
					if n := len([]rune(strings.TrimSuffix(l, "\n"))); n > 80 && !strings.Contains(l, os.TempDir()) &&
						!strings.HasPrefix(l, "- ") && !strings.HasPrefix(l, "  files") {
						t.Errorf("a line of %d columns: %s", n, l)
					}
				}
				if strings.Contains(shown, "\x1b") {
					t.Error("colours where there is no terminal")
				}
			})
		}
	}
}

// The negative control: the comparison of TestDemo detects a report with one changed digit.
func TestDemoComparison(t *testing.T) {
	report, _ := runDemo(t)
	want := sumCSV(t, sample(t, "orders.csv"), "region", "quantity", "amount")
	if diff := cmp.Diff(readReport(t, report)["orders.csv"].strings(), want.strings()); diff != "" {
		t.Fatal(diff)
	}
	i := strings.Index(report, "| **all** |") + len("| **all** | ")
	changed := report[:i] + "9" + report[i+1:]
	if cmp.Equal(readReport(t, changed)["orders.csv"].strings(), want.strings()) {
		t.Errorf("a wrong figure was not seen in\n%s", changed)
	}
}

// randomSet writes a CSV file of several pages and a JSONL file, with invalid rows in both, and
// adds them up at the same time.
func randomSet(t *testing.T, seed uint64) (map[string]string, map[string]sums) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	groups := []string{"north", "größer", `a "b"`, "x, y", "a|b", "日本"}[:2+r.IntN(5)]
	var table bytes.Buffer
	w := csv.NewWriter(&table)
	w.Write([]string{"item_id", "kind", "price", "weight"})
	csvWant, jsonWant := sums{}, sums{}
	for i := range 100 + r.IntN(2900) {
		g := groups[r.IntN(len(groups))]
		price := fmt.Sprintf("%d.%02d", r.IntN(10000)-2000, r.IntN(100))
		weight := strconv.Itoa(r.IntN(50))
		switch r.IntN(12) {
		case 0:
			price = "n/a"
		case 1:
			price = ""
		case 2:
			weight = "1,5"
		}
		w.Write([]string{fmt.Sprint(i), g, price, weight})
		csvWant.add(g, "", "1")
		csvWant.add(g, "price", price)
		csvWant.add(g, "weight", weight)
	}
	w.Flush()
	var lines strings.Builder
	for range 5 + r.IntN(200) {
		g, score := groups[r.IntN(len(groups))], fmt.Sprintf("%d.%03d", r.IntN(90), r.IntN(1000))
		if r.IntN(10) == 0 {
			score = "null"
		}
		name, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&lines, "{\"kind\":%s,\"score\":%s}\n", name, score)
		jsonWant.add(g, "", "1")
		jsonWant.add(g, "score", score)
	}
	return map[string]string{"items.csv": table.String(), "scores.jsonl": lines.String()},
		map[string]sums{"items.csv": csvWant, "scores.jsonl": jsonWant}
}
