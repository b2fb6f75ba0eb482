package match

// pair returns a maximum matching of left with right: for each of left the number of its partner,
// or -1.
func pair(left, right int, fits func(i, j int) bool) []int {
	partner := make([]int, right) // of each of right
	for j := range partner {
		partner[j] = -1
	}

	// An augmenting path gives i a partner, and the one before it another.
	var augment func(i int, visited []bool) bool
	augment = func(i int, visited []bool) bool {
		for j := range right {
			if visited[j] || !fits(i, j) {
				continue
			}
			visited[j] = true
			if partner[j] < 0 || augment(partner[j], visited) {
				partner[j] = i
				return true
			}
		}
		return false
	}
	for i := range left {
		augment(i, make([]bool, right))
	}

	pairs := make([]int, left)
	for i := range pairs {
		pairs[i] = -1
	}
	for j, i := range partner {
		if i >= 0 {
			pairs[i] = j
		}
	}
	return pairs
}

// paired returns how many have a partner.
func paired(pairs []int) (n int) {
	for _, j := range pairs {
		if j >= 0 {
			n++
		}
	}
	return n
}
