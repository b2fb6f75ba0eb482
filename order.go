package pawl

// order.go: which calls of a step wait for earlier ones.

import "bytes"

// rank is the place of a call in the order of its step; see Effect.
type rank int

const (
	rankFree   rank = iota // waits for no call, and no call waits for it
	rankShared             // waits for earlier calls of rankWrite
	rankWrite              // waits for earlier calls of rankShared and rankWrite
)

func (t *Tool) rank() rank {
	switch {
	case t == nil || t.Passive:
		return rankFree // nothing is executed here
	case t.Concurrent || t.Effect == EffectPure:
		return rankFree
	case t.Effect == EffectWrite || t.Effect == EffectIdempotent:
		return rankWrite
	}
	return rankShared
}

func (t *Task) rank() rank {
	tool := t.Tool()
	if t.Refuse != "" || tool != nil && tool == t.scope.answer {
		return rankFree // it does not run, or has no side effect
	}
	return tool.rank()
}

// Order returns, for each of tasks, the indices of the earlier tasks that it waits for; see Effect,
// Tool.Concurrent and Tool.Serial. Tasks that these wait for are not repeated. nil means that no
// task waits. With StopOnBlock each task waits for the task before it.
//
// Engine.Schedule keeps the order: a task starts when the tasks that it waits for have ended. If
// one of them has an open question instead, or is held itself, Task.HeldBy names the call in
// question.
func (p Parallel) Order(tasks []Task) (before [][]int) {
	add := func(i, j int) {
		if before == nil {
			before = make([][]int, len(tasks))
		}
		if len(before[i]) == 0 || before[i][0] != j { // only the first has a second reason, its key
			before[i] = append(before[i], j)
		}
	}
	write := -1 // the last one
	var serial map[string]int
	for i := range tasks {
		if p.StopOnBlock {
			if i > 0 {
				add(i, i-1)
			}
			continue
		}
		if key := tasks[i].serialKey(); key != "" {
			if j, ok := serial[key]; ok {
				add(i, j)
			}
			if serial == nil {
				serial = map[string]int{}
			}
			serial[key] = i
		}
		own := tasks[i].rank()
		if own == rankFree {
			continue
		}

		// Reads since the last write wait for that write. A write that waits for such a read need
		// not wait for the write itself.
		reads := false
		if own == rankWrite {
			for j := write + 1; j < i; j++ {
				if tasks[j].rank() == rankShared {
					add(i, j)
					reads = true
				}
			}
		}
		if !reads && write >= 0 {
			add(i, write)
		}
		if own == rankWrite {
			write = i
		}
	}
	return before
}

// turn is the place of a task in the order of its batch.
type turn struct {
	open int   // the tasks that it waits for
	then []int // the tasks that wait for it
}

// turns returns nil if no task waits.
func (p Parallel) turns(tasks []Task) []turn {
	before := p.Order(tasks)
	if before == nil {
		return nil
	}
	turns := make([]turn, len(tasks))
	for i, earlier := range before {
		turns[i].open = len(earlier)
		for _, j := range earlier {
			turns[j].then = append(turns[j].then, i)
		}
	}
	return turns
}

// serialKey returns the Serial key of the call. Empty means none.
func (t *Task) serialKey() (key string) {
	tool := t.Tool()
	if tool == nil || tool.Serial == nil {
		return ""
	}
	defer func() {
		if recover() != nil {
			key = "" // the arguments are not validated yet; the pipeline will report the fault
		}
	}()
	return tool.Serial(bytes.Clone(tool.meant(t.Call.Args)))
}
