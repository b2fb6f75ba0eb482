package data_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/pawl-go/pawl"
	"github.com/pawl-go/pawl/internal/test/soak"
	"github.com/pawl-go/pawl/internal/test/tooltest"
	"github.com/pawl-go/pawl/llm"
	"github.com/pawl-go/pawl/script"
)

// childDir is set in the environment of a child that does the work of TestMillionRows in a process
// of its own.
const childDir = "PAWL_TEST_MILLION_ROWS"

var (
	million  = soak.N(200_000, 1_000_000)
	mostPeak = soak.N(160<<10, 384<<10) // kB that the child may take
)

func TestMain(m *testing.M) { tooltest.Children(m, childDir, useMillion) }

// useMillion runs an agent that works on a file of a million rows by naming tables. It prints the
// duration of each call.
func useMillion(dir string) error {
	set := within(dir, 0)
	calls := [][2]string{
		{"data_parse", `{"path":"sales.csv","save_as":"sales"}`},
		{"data_filter", `{"table":"sales","where":[{"column":"amount","op":">=","value":500},{"column":"note","op":"contains","value":"ÄRGER"}],"save_as":"large"}`},
		{"data_aggregate", `{"table":"sales","group_by":["region"],"metrics":[{"column":"amount","op":"sum"},{"column":"amount","op":"avg"},{"column":"id","op":"count"},{"column":"id","op":"max"}]}`},
		{"data_transform", `{"table":"sales","select":["id","amount","region"],"rename":{"amount":"value"},"sort_by":"value","sort_desc":true,"save_as":"sorted"}`},
		{"data_transform", fmt.Sprintf(`{"table":"sorted","offset":%d}`, million-2)},
		{"data_aggregate", `{"table":"large","metrics":[{"column":"id","op":"count"}]}`},
		{"data_export", `{"table":"sorted","path":"sorted.csv"}`},
	}
	var turns []script.Turn
	for _, c := range calls {
		turns = append(turns, calling(c))
	}
	agent := &pawl.Agent{Model: script.New(append(turns, script.Say("done"))...), Tools: []pawl.Toolset{set}}
	res, err := agent.Run(context.Background(), llm.User("go"))
	if err != nil {
		return err
	}
	for i, s := range res.Steps[:len(calls)] {
		x := s.Executions[0]
		fmt.Printf("%-15s %6d ms %6d bytes  %.150s\n", x.Call.Name, x.Ended.Sub(x.Started).Milliseconds(), len(x.Result.Text()), x.Result.Text())
		if x.Outcome != pawl.OutcomeOK {
			return fmt.Errorf("call %d: %s: %s", i, x.Outcome, x.Result.Text())
		}
	}
	transcript, err := json.Marshal(res.Messages)
	if err != nil {
		return err
	}
	fmt.Printf("transcript: %d bytes\nanswers: %s %s %s\n", len(transcript), res.Steps[2].Executions[0].Result.Text(),
		res.Steps[4].Executions[0].Result.Text(), res.Steps[5].Executions[0].Result.Text())
	return nil
}

// A million rows are read from a file, filtered, aggregated, sorted and written by calls that name
// tables. The transcript and the memory of the process stay small. The results equal the results of
// a loop over the same rows.
func TestMillionRows(t *testing.T) {
	soak.Sequential(t)
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "sales.csv"))
	tooltest.Must(t, err)
	w := bufio.NewWriter(f)
	w.WriteString("id,region,amount,day,note\n")
	regions := []string{"north", "south", "east", "west"}
	cents, count, large := map[string]int64{}, map[string]int{}, 0
	for i := range million {
		region, amount := regions[i%4], int64(i*7919%100_000) // in cents
		note := "fine"
		if i%10 == 0 {
			note = "\"some, Ärger\""
		}
		if i%10 == 0 && amount >= 50_000 {
			large++
		}
		cents[region] += amount
		count[region]++
		fmt.Fprintf(w, "%d,%s,%d.%02d,2026-%02d-%02d,%s\n", i, region, amount/100, amount%100, 1+i%12, 1+i%28, note)
	}
	tooltest.Must(t, w.Flush())
	size, err := f.Seek(0, 1)
	tooltest.Must(t, err)
	tooltest.Must(t, f.Close())

	t.Logf("a file of %d MB", size>>20)
	out, peak := tooltest.Child(t, childDir, dir)
	var sums []string
	for _, r := range []string{"east", "north", "south", "west"} {
		sums = append(sums, fmt.Sprintf(`{"region":"%s","sum_amount":%s,`, r,
			strings.TrimSuffix(strings.TrimSuffix(fmt.Sprintf("%d.%02d", cents[r]/100, cents[r]%100), "0"), ".0")))
	}
	sums = append(sums, fmt.Sprintf(`"count_id":%d,`, count["east"]), fmt.Sprintf(`"groups":[{"count_id":%d}]`, large), `"value":"0.00"`)
	for _, want := range sums {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in what was answered", want)
		}
	}
	if n := number(t, out, `transcript: (\d+) bytes`); n > 10_000 {
		t.Errorf("the transcript has %d bytes: rows went through it", n)
	}
	if runtime.GOOS == "linux" && (peak == 0 || peak > mostPeak) {
		t.Errorf("the process took %d kB; %d are allowed", peak, mostPeak)
	}
	sorted, err := os.Open(filepath.Join(dir, "sorted.csv"))
	tooltest.Must(t, err)
	defer sorted.Close()
	lines, last := bufio.NewScanner(sorted), ""
	n := 0
	for ; lines.Scan(); n++ {
		last = lines.Text()
	}
	// of ten rows with 0.00 the last, as the order stays
	if n != million+1 || last != fmt.Sprintf("%d,0.00,north", million-100_000) {
		t.Errorf("%d lines were written, the last one is %q", n, last)
	}
}

func number(t *testing.T, out []byte, pattern string) int {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatch(out)
	if m == nil {
		t.Fatalf("no %s in %s", pattern, out)
	}
	n, _ := strconv.Atoi(string(m[1]))
	return n
}
